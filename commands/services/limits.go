package services

import (
	"time"
)

const (
	// Retention of a workflow's status record.
	Retention     = 720 * time.Hour
	maxPaidAnswer = 512 << 10 // octets: sealed, it stands in the claim, and in the call.completed after it
)
