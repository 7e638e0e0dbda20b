package setting

import "io/fs"

// ownedByUs leaves the question to the access lists of the folder: a file's mode
// tells nothing of them here.
func ownedByUs(fs.FileInfo) bool { return true }
