package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// HookFindings checks the guards of the coding agents on this machine, and compares the rule sets
// of the installed programs that contain the guard (countersign and countersign-guard).
func HookFindings(ctx context.Context, o *Output, agent string, command []string) (found []screen.Finding) {
	for _, f := range o.Account().Try(ctx, agents.Agent(agent), command) {
		found = append(found, screen.Finding{Name: "hook", State: f.State, Detail: f.Detail})
	}
	version, hash := actionrisk.Ruleset()
	own := ruleset{version, hash}
	found = append(found, screen.OK("rules", fmt.Sprintf("rule set %s, %s", version, hash)))
	for _, path := range otherPrograms() {
		found = append(found, own.against(ctx, path))
	}
	return found
}

// otherPrograms returns the paths of other installed programs that contain the guard. It looks in
// PATH and in the folder of this program.
func otherPrograms() (paths []string) {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	var known []os.FileInfo
	if info, err := os.Stat(self); err == nil {
		known = append(known, info)
	}
	for _, name := range launch.Programs {
		for _, path := range []string{name, filepath.Join(filepath.Dir(self), name)} {
			path, err := exec.LookPath(path)
			if err != nil {
				continue
			}
			info, err := os.Stat(path)
			if err != nil || slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, info) }) {
				continue
			}
			known, paths = append(known, info), append(paths, path)
		}
	}
	return paths
}

// ruleset is the version and hash of the rules of a program.
type ruleset struct {
	Version string `json:"rulesetVersion"`
	Hash    string `json:"rulesetHash"`
}

// against compares the rule set of this program with that of the program at path, which it runs
// once to get a verdict with version and hash of its rule set.
func (own ruleset) against(ctx context.Context, path string) screen.Finding {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	ask := exec.CommandContext(ctx, path, "gate", "--json", "--", "true")
	ask.WaitDelay = time.Second // do not wait longer for a child process that keeps the pipe open
	answer, err := ask.Output()
	var other ruleset
	if err == nil {
		err = json.Unmarshal(answer, &other)
	}
	update := func(program string) string {
		name := strings.TrimSuffix(filepath.Base(program), ".exe")
		return fmt.Sprintf("update %s: go install ./cmd/%s in the newest source", program, name)
	}
	self, _ := os.Executable()
	switch differ := fmt.Sprintf("%s has rule set %s, %s, which differs from the rule set of this program; ", path, other.Version, other.Hash); {
	case err != nil || other.Hash == "":
		return screen.Warning("rules", fmt.Sprintf("%s does not report its rule set; %s", path, update(path)))
	case other == own:
		return screen.OK("rules", path+" has the same rule set")
	case other.Version < own.Version:
		return screen.Warning("rules", differ+update(path))
	case other.Version > own.Version:
		return screen.Warning("rules", differ+update(self))
	default:
		return screen.Warning("rules", differ+"install both from the same source")
	}
}

// Doctor checks the guards of coding agents. In countersign-guard it is the whole command doctor.
type Doctor struct {
	Hook  bool   `help:"Start each hook as its agent would and check that it blocks a test command, and compare the rule sets of countersign and countersign-guard." default:"true"`
	Agent string `help:"Only this agent (claude, codex, cursor, gemini, opencode, qwen, copilot)." enum:",claude,codex,cursor,gemini,opencode,qwen,copilot" default:""`

	HookCommand []string `arg:"" optional:"" name:"hook-command" help:"After --: the command of a hook, which is checked instead of the hooks in the settings."`
}

// Run prints the findings. The exit code is 1 if one of them is a problem.
func (c *Doctor) Run(ctx context.Context, o *Output) error {
	if !c.Hook {
		return errors.New("this program checks hooks only; countersign doctor checks a service")
	}
	return o.Findings(HookFindings(ctx, o, c.Agent, c.HookCommand))
}
