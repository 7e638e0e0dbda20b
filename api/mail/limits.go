package mail

import "time"

// Limits of e-mails.
const (
	smtpTimeout = 10 * time.Second
	outboxCode  = 10 // characters of the outbox code: 50 bits
	maxOutbox   = 50 // messages that the outbox keeps

	messageEvery   = 10 * time.Minute // shortest time between two messages to an organization about waiting decisions, or about the drafts of one author
	messageTimeout = 30 * time.Second // time to write and send the messages about one decision or draft
	countedReviews = 1000             // largest number of waiting decisions that a message states; for more it says "at least"
	keptNotes      = 100              // number of newest decisions or drafts from which the next message chooses one that still waits
	maxValue       = 500              // characters of a value that a message includes
)
