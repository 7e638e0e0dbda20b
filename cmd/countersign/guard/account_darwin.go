package guard

import (
	"os/user"
	"strconv"
)

func machineFile() string { return "/etc/countersign.json" }

// homeOf returns the home folder from the user database. It does not use cgo.
func homeOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.HomeDir
}
