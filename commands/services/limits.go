package services

import "time"

const (
	// Retention is how long the status record of a workflow is shown.
	Retention     = 720 * time.Hour
	maxPaidAnswer = 512 << 10 // bytes: the claim of the payment contains the encrypted answer, and so does call.completed
)
