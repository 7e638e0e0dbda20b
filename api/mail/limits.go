package mail

import "time"

// Bounds of e-mails.
const (
	smtpTimeout = 10 * time.Second
	outboxCode  = 10 // letters and digits of the outbox's code: 50 bits
	maxOutbox   = 50 // messages that the outbox keeps

	reviewsEvery   = 10 * time.Minute // between two messages about waiting decisions to an organization
	reviewsTimeout = 30 * time.Second // for one round of messages
	countedReviews = 1000             // waiting decisions that a message counts; from this number on it says "at least"
	keptNotes      = 100              // newest decisions from which the next message chooses one that waits
	maxValue       = 500              // characters of a value that a message repeats
)
