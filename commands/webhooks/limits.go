package webhooks

const (
	maxWebhooks  = 20  // of an organization: each decision may be a message to each of them
	maxRotations = 500 // of one webhook: its stream is read completely
)
