package services

import "time"

const (
	// Retention is the time for which the status of a workflow can be read.
	Retention     = 720 * time.Hour
	maxPaidAnswer = 512 << 10 // bytes; the answer is stored encrypted in the payment's claim, and again in call.completed
)
