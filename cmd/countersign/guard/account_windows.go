package guard

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// machineFile returns the operator's settings file, in a folder that only administrators can write
// to.
func machineFile() string {
	folder, err := windows.KnownFolderPath(windows.FOLDERID_ProgramFiles, 0)
	if err != nil {
		folder = `C:\Program Files`
	}
	return filepath.Join(folder, "countersign", "countersign.json")
}

// homeOf returns the profile folder of the user who runs this process.
func homeOf(int) string {
	home, err := windows.KnownFolderPath(windows.FOLDERID_Profile, 0)
	if err != nil {
		return ""
	}
	return home
}
