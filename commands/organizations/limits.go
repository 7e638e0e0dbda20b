package organizations

import "time"

const (
	maxMembers   = 1000 // of an organization: its stream is read completely
	maxAddresses = 100  // networks that one token may be bound to
	tokenDays    = 90   // validity of an organization token unless asked otherwise
	maxTokenDays = 365  // within a year people forget where they have stored a token
	// RotationOverlap is how long an old secret stays valid after a rotation.
	RotationOverlap  = 24 * time.Hour
	freshSignIn      = 10 * time.Minute    // age of a sign-in that may still change rights and policies
	evidenceReadable = 90 * 24 * time.Hour // after a plan has ended, so that nobody has to pay to see evidence
)
