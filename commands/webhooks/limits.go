package webhooks

const (
	maxWebhooks  = 20  // webhooks of one organization; each decision may be sent to all of them
	maxRotations = 500 // rotations of one webhook; every command reads all of them
)
