package store

import "time"

const (
	downloadLives = 15 * time.Minute // validity of a link to a file
	maxDownloads  = 20               // of one purchase: enough for every machine of its buyer
	fetchAgain    = 15 * time.Minute // after the first download, in which the e-mail address of the order gets another link: the download may have broken off
	forgetLinks   = 24 * time.Hour   // after which an old link is answered like an unknown one
	askAgain      = 60               // seconds between two questions to the checkout provider about one subscription
)
