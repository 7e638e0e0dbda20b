package main

import (
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/operate"
	"github.com/countersign/countersign/cmd/countersign/setting"
)

// documented are the files and folders with texts that name commands.
var documented = []string{"README.md", ".deploy", "compose.yaml", ".github", "api/site/content", "api/web/templates", "api/clients"}

var (
	fencedPattern  = regexp.MustCompile("(?s)```.*?```|<pre[^>]*>.*?</pre>|`[^`\n]+`|<code[^>]*>[^<]*</code>")
	commandPattern = regexp.MustCompile(`(?m)(?:^|[;|&(\x60>]) *(?:sudo |export |[A-Z_]+=\S* )*(?:bin/|\./|go run \./cmd/)?countersign ([^\n\x60]*)`)
	endPattern     = regexp.MustCompile(` \|\|? | && |; | # |  #| -- |</`)
)

// Every command in a text that people read exists, and has the flags with which the text shows it.
func TestEveryCommandOfTheDocumentsExists(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, kong.NamedMapper("days", kong.MapperFunc(gate.ReadDays)), setting.SecretsFromFiles, variables(operate.VersionText()))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, place := range documented {
		err := filepath.WalkDir(filepath.Join("../..", place), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".md", ".html", ".txt", ".yaml", ".service", ".py"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			for _, code := range fencedPattern.FindAllString(string(text), -1) {
				code = strings.ReplaceAll(html.UnescapeString(code), "\\\n", " ")
				for _, m := range commandPattern.FindAllStringSubmatch(code, -1) {
					line := endPattern.Split(m[1], 2)[0]
					if strings.HasPrefix(line, "answers at") { // a line that serve prints
						continue
					}
					seen++
					if problem := misused(parser.Model.Node, strings.Fields(line)); problem != "" {
						t.Errorf("%s: countersign %s: %s", path, line, problem)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 150 {
		t.Errorf("%d commands were found", seen)
	}
}

// misused returns what is wrong with a command line, or "": it names no command, or a flag that its
// command does not have.
func misused(node *kong.Node, words []string) string {
	root := node
	for _, word := range words {
		word = strings.Trim(word, "\"'`).,;…")
		if name, is := strings.CutPrefix(word, "--"); is {
			name, _, _ = strings.Cut(name, "=")
			if !hasFlag(node, name) {
				return "no flag --" + name
			}
			continue
		}
		at := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word })
		if at >= 0 {
			node = node.Children[at]
		} else if node == root {
			return "no command " + word
		}
	}
	return ""
}

func hasFlag(node *kong.Node, name string) bool {
	nodes := []*kong.Node{node}
	if node.DefaultCmd != nil {
		nodes = append(nodes, node.DefaultCmd)
	}
	for _, node := range nodes {
		for _, flags := range node.AllFlags(false) {
			if slices.ContainsFunc(flags, func(f *kong.Flag) bool { return f.Name == name || slices.Contains(f.Aliases, name) }) {
				return true
			}
		}
	}
	return false
}
