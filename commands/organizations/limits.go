package organizations

import "time"

const (
	maxMembers   = 1000 // members of one organization; each change reads the whole stream
	maxAddresses = 100  // networks to which one token can be restricted
	tokenDays    = 90   // default validity of a token
	maxTokenDays = 365  // longest validity of a token: after a year, owners forget where they have stored it
	// RotationOverlap is the time for which the old secret stays valid after a rotation.
	RotationOverlap  = 24 * time.Hour
	freshSignIn      = 10 * time.Minute    // rights with grant.fresh require a sign-in that is younger than this
	evidenceReadable = 90 * 24 * time.Hour // evidence stays readable for this time after a plan has ended, so that no organization has to pay to see it
)
