package webhooks

const (
	maxWebhooks  = 20  // of an organization: each decision may be a message to all of them
	maxRotations = 500 // of one webhook: its stream is read as a whole
)
