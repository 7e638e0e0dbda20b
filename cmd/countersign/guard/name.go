package guard

import (
	"os"
	"path/filepath"
	"strings"
)

// Name is how the user types this program in the commands that texts recommend: the
// guard is part of countersign and is also a program of its own.
var Name = nameOf(os.Args[0])

// Programs are the programs with the guard in them, by their names.
func Programs() []string { return programNames }

func nameOf(program string) string {
	if strings.HasPrefix(filepath.Base(program), "countersign-guard") {
		return "countersign-guard"
	}
	return "countersign"
}
