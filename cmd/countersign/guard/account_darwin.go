package guard

import (
	"os/user"
	"strconv"
)

func machineFile() string { return "/etc/countersign.json" }

// homeOf reads the home folder from the user database. It does so without cgo.
func homeOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.HomeDir
}
