package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Read describes files that a tool runs although its command line does not name them, and their
// language.
type Read struct {
	Sub []string `json:"sub,omitempty"` // only for these subcommands
	// Files are patterns for the file's name or, with a slash, for the end of its path.
	Files []string `json:"files"`
	Lang  string   `json:"lang"`
	// Named: a word of the command line must name the file or its folder.
	Named bool `json:"named,omitempty"`
	// Compile: the tool compiles the file, which does not run it. So a downloaded file does not
	// count as run.
	Compile bool     `json:"compile,omitempty"`
	Unless  []string `json:"unless,omitempty"` // with one of these options the file is not read
	Dry     bool     `json:"dry,omitempty"`    // a dry run reads the file, too
}

// readReads reads reads.json: which settings in files are command lines.
func (c *Set) readReads(read rules.TableReader) error {
	var t struct {
		// Keys are the settings whose value is a command line. Sections are objects whose values
		// are all command lines.
		Keys     []string `json:"keys"`
		Sections []string `json:"sections"`
		// Lifecycle are the scripts that an installation runs.
		Lifecycle []string `json:"lifecycle"`
	}
	err := read("reads", &t)
	c.CommandKeys, c.CommandSections, c.Lifecycle = setOf(t.Keys), setOf(t.Sections), t.Lifecycle
	return err
}

// NamedLike reports whether a pattern matches the file's name or the end of its path.
func NamedLike(pattern, name string) bool {
	return paths.GlobMatch(pattern, lastParts(name, strings.Count(pattern, "/")))
}

// lastParts returns the last n+1 parts of a path.
func lastParts(name string, n int) string {
	i := len(name)
	for ; n >= 0 && i > 0; n-- {
		i = strings.LastIndexByte(name[:i], '/')
	}
	return name[i+1:]
}
