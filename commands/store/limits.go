package store

import (
	"time"
)

const (
	downloadLives = 15 * time.Minute // of a link to a file
	maxDownloads  = 20               // of one purchase: enough for every machine of its buyer
	fetchAgain    = 15 * time.Minute // after the first download, for a payment sent again with the e-mail of the order: it may have broken off
	forgetLinks   = 24 * time.Hour   // after which an old link is as unknown as any other
	askAgain      = 60               // seconds: how often the checkout provider is asked about one subscription
)
