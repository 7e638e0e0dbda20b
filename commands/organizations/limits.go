package organizations

import (
	"time"
)

const (
	maxMembers   = 1000 // of an organization: its stream is read as a whole
	maxAddresses = 100  // networks a token is bound to
	tokenDays    = 90   // life of an organization token unless asked otherwise
	maxTokenDays = 365  // nobody remembers a secret's places for longer
	// RotationOverlap is how long an old secret stays valid after a rotation.
	RotationOverlap  = 24 * time.Hour
	freshSignIn      = 10 * time.Minute    // for what changes rights and rules
	evidenceReadable = 90 * 24 * time.Hour // after a plan has ended: evidence is never hostage
)
