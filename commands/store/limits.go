package store

import "time"

const (
	downloadLives = 15 * time.Minute // how long a link to a file is valid
	maxDownloads  = 20               // of one purchase: enough for all computers of its buyer
	fetchAgain    = 15 * time.Minute // after the first download: how long the e-mail address of the order gets another link, since the download may have broken off
	forgetLinks   = 24 * time.Hour   // after which an expired link is answered like an unknown one
	askAgain      = 60               // seconds between two requests to the checkout provider about one subscription
)
