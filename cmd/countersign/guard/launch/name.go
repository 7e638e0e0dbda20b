package launch

import (
	"os"
	"path/filepath"
	"strings"
)

// Name is this program's name, countersign or countersign-guard, for commands in texts.
var Name = nameOf(os.Args[0])

// Programs lists the programs that contain the guard.
var Programs = []string{"countersign", "countersign-guard"}

func nameOf(program string) string {
	if strings.HasPrefix(filepath.Base(program), "countersign-guard") {
		return "countersign-guard"
	}
	return "countersign"
}
