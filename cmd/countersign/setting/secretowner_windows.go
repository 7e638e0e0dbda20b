package setting

import "io/fs"

// ownedByUs accepts every file: on Windows the access lists of the folder protect it, and the
// file mode does not show them.
func ownedByUs(fs.FileInfo) bool { return true }
