package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Read says which files of a folder a tool runs without being told so on its command
// line, and in which language they are written.
type Read struct {
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// Files are patterns for the file's name, or, with a slash, for the end of its path.
	Files []string `json:"files"`
	Lang  string   `json:"lang"`
	// Named: only if a word of the command line names the file or its folder.
	Named bool `json:"named,omitempty"`
	// Compile: the file is made into a program; a downloaded one is not run by that.
	Compile bool     `json:"compile,omitempty"`
	Unless  []string `json:"unless,omitempty"` // with one of these it is not read
	Dry     bool     `json:"dry,omitempty"`    // a dry run reads it, too
}

// readReads reads reads.json: what in files is a command line.
func (c *Set) readReads(read rules.TableReader) error {
	var t struct {
		// Keys are the settings whose value is a command line; Sections are those that
		// hold command lines by name.
		Keys     []string `json:"keys"`
		Sections []string `json:"sections"`
		// Lifecycle are the scripts that an installation runs by itself.
		Lifecycle []string `json:"lifecycle"`
	}
	err := read("reads", &t)
	c.CommandKeys, c.CommandSections, c.Lifecycle = setOf(t.Keys), setOf(t.Sections), t.Lifecycle
	return err
}

// NamedLike: the pattern holds for the file's name, or for the end of its path.
func NamedLike(pattern, name string) bool {
	return paths.GlobMatch(pattern, lastParts(name, strings.Count(pattern, "/")))
}

// lastParts is the last part of a path and n more.
func lastParts(name string, n int) string {
	i := len(name)
	for ; n >= 0 && i > 0; n-- {
		i = strings.LastIndexByte(name[:i], '/')
	}
	return name[i+1:]
}
