package api

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
)

// snippet is a block of code on a page that is marked as runnable.
type snippet struct {
	language, code string
	prints         string // expected output; empty means that the output is not checked
}

// snippets returns the runnable blocks of a page in order.
func snippets(markdown string) (list []snippet) {
	blocks := strings.Split("\n"+markdown, "\n```")
	for i := 1; i < len(blocks); i += 2 {
		info, code, _ := strings.Cut(blocks[i], "\n")
		switch language, runs, _ := strings.Cut(info, " "); {
		case runs == "run":
			list = append(list, snippet{language: language, code: code + "\n"})
		case info == "text prints" && len(list) > 0:
			list[len(list)-1].prints = code + "\n"
		}
	}
	return list
}

// interpreters maps languages to the program that runs them and the file name that it needs.
var interpreters = map[string]struct {
	file    string
	command []string
}{
	"js":     {"snippet.mjs", []string{"node"}},
	"python": {"snippet.py", []string{"python3"}},
	"go":     {"snippet.go", []string{"go", "run"}},
}

// nodeModules is the variable with a folder of npm packages that contains the package countersign,
// installed from its archive (.ci/clients/run). Without it, snippets that import the package are
// skipped with a message, because only npm can compile it.
const nodeModules = "COUNTERSIGN_NODE_MODULES"

// snippetTimeout limits one page. It includes the build of a Go program.
const snippetTimeout = 2 * time.Minute

// TestEverySnippetRuns runs every runnable snippet in its language against this service, and
// checks that it prints what the page shows. A snippet that the machine cannot run is skipped with
// a message.
func TestEverySnippetRuns(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true, machineClock: true})
	from, err := n.server.content.Pages.Site()
	if err != nil {
		t.Fatal(err)
	}
	orgID, token := n.organizationWith(`{"policyId":"default","allowedMcpServers":["files"],"allowedMcpTools":["write"],"allowedHosts":["api.weather.example"],"allowedNetworks":["base"]}`)
	python, err := filepath.Abs("clients/python")
	if err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "KEY="+n.issueKey(), "COUNTERSIGN_ORG="+orgID, "COUNTERSIGN_TOKEN="+token, "PYTHONPATH="+python, "PYTHONDONTWRITEBYTECODE=1")
	ran := map[string]int{}
	for _, p := range from.Pages {
		if p.Type == "rules" || p.Type == "errors" {
			continue
		}
		if list := snippets(p.Markdown); len(list) > 0 {
			t.Run(p.Path, func(t *testing.T) { n.runSnippets(t, p, environment, ran) })
		}
	}
	for _, language := range []string{"sh", "js", "python", "go"} {
		t.Logf("%s: %d snippets", language, ran[language])
	}
	if ran["sh"] < len(services.List()) {
		t.Errorf("%d snippets of the shell ran", ran["sh"])
	}
}

// TestTheFirstPagePastes checks that the commands of the first page work as they stand: "The front
// page's snippets work when pasted."
func TestTheFirstPagePastes(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true, machineClock: true})
	code := regexp.MustCompile(`(?s)<pre data-copy-block>(.*?)</pre>`).FindStringSubmatch(string(n.send(http.MethodGet, "/", "", "Accept", "text/html").body))
	if code == nil {
		t.Fatal("the page has no commands")
	}
	if printed := execute(t, t.TempDir(), slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KEY=") }), "bash", "-c", html.UnescapeString(code[1])); !strings.Contains(printed, `"risk":"critical"`) {
		t.Errorf("the commands print %s", printed)
	}
}

// runSnippets runs the snippets of a page in a new folder. Shell snippets run as one script, as if
// a reader typed them into one terminal. The folder contains the keys of the service in jwks.json.
func (n *node) runSnippets(t *testing.T, p *site.Page, environment []string, ran map[string]int) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "jwks.json"), n.get("/.well-known/jwks.json").body, 0o600); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -eo pipefail\n")
	for _, s := range snippets(p.Markdown) {
		if s.language == "sh" {
			script.WriteString(s.code)
			ran["sh"]++
			continue
		}
		with, known := interpreters[s.language]
		if !known {
			t.Errorf("nobody here runs %s", s.language)
			continue
		}
		if _, err := exec.LookPath(with.command[0]); err != nil {
			t.Logf("skipped: %s is not there", with.command[0])
			continue
		}
		if s.language == "js" && strings.Contains(s.code, `from "countersign"`) && !installed(t, folder) {
			t.Logf("skipped: %s is not set", nodeModules)
			continue
		}
		in := folder
		if s.language == "go" {
			in = "." // inside the module, because it imports its packages
		}
		file := filepath.Join(folder, with.file)
		if err := os.WriteFile(file, []byte(s.code), 0o600); err != nil {
			t.Fatal(err)
		}
		printed := execute(t, in, environment, append(with.command, file)...)
		if s.prints != "" && printed != s.prints {
			t.Errorf("%s prints\n%s\nthe page says\n%s", s.language, printed, s.prints)
		}
		ran[s.language]++
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("skipped: curl is not there")
		return
	}
	execute(t, folder, environment, "bash", "-c", script.String())
}

// installed links the npm packages into a folder. It returns false if there are none.
func installed(t *testing.T, folder string) bool {
	t.Helper()
	from := os.Getenv(nodeModules)
	if from == "" {
		return false
	}
	if err := os.Symlink(from, filepath.Join(folder, "node_modules")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return true
}

func execute(t *testing.T, folder string, environment []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), snippetTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &stdout, &stderr
	cmd.Env = environment
	if err := cmd.Run(); err != nil {
		t.Errorf("%.60s: %v\n%s%s", strings.Join(command, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}
