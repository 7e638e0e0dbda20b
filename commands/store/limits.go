package store

import "time"

const (
	downloadLives = 15 * time.Minute // validity of a download link
	maxDownloads  = 20               // downloads of one purchase: enough for all computers of its buyer
	fetchAgain    = 15 * time.Minute // time after the first download in which a repeated payment with the e-mail address of the order gets another link, in case the download broke off
	forgetLinks   = 24 * time.Hour   // an expired link is refused as expired for this time, then as unknown
	askAgain      = 60               // seconds between two requests to the card provider about one subscription
)
