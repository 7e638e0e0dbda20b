package launch

import (
	"os"
	"path/filepath"
	"strings"
)

// Name is the name of this program in the commands that texts recommend: countersign or
// countersign-guard.
var Name = nameOf(os.Args[0])

// Programs are the names of the programs that contain the guard.
var Programs = []string{"countersign", "countersign-guard"}

func nameOf(program string) string {
	if strings.HasPrefix(filepath.Base(program), "countersign-guard") {
		return "countersign-guard"
	}
	return "countersign"
}
