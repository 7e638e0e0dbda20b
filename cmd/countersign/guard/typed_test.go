package guard

import (
	"testing"

	"github.com/countersign/countersign/cmd/countersign/guard/agents"
)

// The guard asks about a command that starts an agent without the user's settings, or in a mode in
// which the agent asks nobody.
func TestProtectFurtherLaunches(t *testing.T) {
	m := newGuarded(t)
	for _, command := range []string{
		`env -i PATH=$PATH claude -p x`,
		`env -i claude -p x`,
		`env -i HOME=/tmp/x claude -p x`,
		`env -u HOME claude -p x`,
		`env --unset=HOME claude -p x`,
		`env - claude -p x`,
		`unset HOME; claude -p x`,
		`unset HOME && codex exec x`,
		`export HOME=/tmp/x; claude -p x`,
		`HOME=/tmp/x claude -p x`,
		`sudo -u nobody claude -p x`,
		`sudo claude -p x`,
		`sudo -H claude -p x`,
		`su other -c 'claude -p x'`,
		`gemini --allowed-tools "ShellTool" -p x`,
		`gemini --allowed-tools=run_shell_command -p x`,
		`qwen --allowed-tools run_shell_command -p x`,
		`GOOSE_MODE=auto goose run -t x`,
		`GOOSE_MODE=auto goose`,
		`export GOOSE_MODE=auto; goose session`,
		`openhands --always-approve -t x`,
		`openhands --headless -t x`,
		`openhands --yolo`,
		`claude --dangerously-load-development-channels x`,
		`claude --allowedTools "Bash(*)" -p x`,
		`claude --allowed-tools Bash -p x`,
		`claude --allowedTools Bash Edit -p x`,
		`claude --permission-prompt-tool x -p y`,
		`claude --no-hooks -p x`,
		`claude --disable-hooks -p x`,
		`claude --agents '{"x":{"permissionMode":"bypassPermissions"}}'`,
		`CLAUDE_CODE_SIMPLE=1 claude`,
		`codex -c approval_policy=never exec x`,
		`codex -c 'approval_policy="never"' -c sandbox_mode=danger-full-access exec x`,
		`codex --config approval_policy=never`,
		`cursor-agent --yolo`,
		`cursor-agent --approve-mcps --force`,
		`copilot --allow-tool 'shell(*)' -p x`,
		`copilot --allow-all -p x`,
		`copilot --allow-all-tools`,
		`copilot --allow-all-paths --allow-all-urls`,
		`COPILOT_ALLOW_ALL=1 copilot -p x`,
		`opencode run --dangerously-skip-permissions x`,
		`OPENCODE_PERMISSION='{"bash":"allow"}' opencode run x`,
		`OPENCODE_CONFIG_CONTENT='{"permission":"allow"}' opencode`,
		`aider --yes -m x`,
		`aider --yes-always`,
		`aider --auto-test --test-cmd 'x' --yes-always`,
		`amp --dangerously-allow-all`,
		`droid exec --auto high x`,
		`droid exec --auto=high x`,
		`cline --yolo x`,
		`cline -y x`,
		`cline --auto-approve-all x`,
		`crush --yolo`,
		`crush -y`,
		`kiro-cli chat --trust-all-tools`,
		`q chat --trust-all-tools`,
		`q chat -a x`,
		`kiro-cli chat --trust-tools=execute_bash`,
		`auggie --dangerously-skip-permissions`,
		`auggie --permission execute:allow`,
		`vibe --auto-approve`,
		`kimi --yolo`,
		`kimi -y`,
		`kimi --auto-approve`,
		`iflow --yolo`,
		`rovodev run --yolo`,
		`acli rovodev run --yolo`,
		`plandex --full`,
		`plandex tell --auto full`,
		`kilocode --auto x`,
		`kilo --auto "x"`,
		`roo --dangerously-skip-permissions`,
		`interpreter -y`,
		`interpreter --auto_run`,
		`gptme -y x`,
		`gptme --non-interactive x`,
		`hermes --yolo`,
		`cn --auto -p x`,
		`cn -p x --allow '*'`,
		`forge --yolo`,
	} {
		if got, answer := m.decide(command, m.web); got != agents.Ask && got != agents.Deny {
			t.Errorf("%q passes: %s", command, answer)
		}
	}
}

// A tool call that starts an agent gets the same verdict as the command that starts it.
func TestProtectAgentTools(t *testing.T) {
	m := newGuarded(t)
	for input, stopped := range map[string]bool{
		`{"prompt":"y","mode":"bypassPermissions"}`: true, `{"prompt":"y","permissionMode":"bypassPermissions"}`: true, `{"prompt":"y","permission_mode":"bypassPermissions"}`: true,
		`{"prompt":"y","approval-policy":"never"}`: true, `{"prompt":"y","sandbox":"danger-full-access"}`: true, `{"prompt":"y","dangerously_skip_permissions":true}`: true, `{"prompt":"y","yolo":true}`: true,
		`{"prompt":"y","mode":"plan"}`: false, `{"prompt":"explain bypassPermissions","subagent_type":"Explore"}`: false, `{"prompt":"y","yolo":false}`: false, `{"prompt":"y","approval-policy":"on-request"}`: false,
	} {
		for _, tool := range []string{"Task", "Agent", "mcp__codex__codex"} {
			if got, answer := m.answer(m.toolEvent(tool, input)); (got != agents.Pass) != stopped {
				t.Errorf("%s %s: %s: %s", tool, input, got, answer)
			}
		}
	}
}

// The guard asks about a command that types an answer into another terminal or window, because
// that could give the user's consent.
func TestProtectTypedAnswers(t *testing.T) {
	m := newGuarded(t)
	for _, command := range []string{
		`screen -X stuff "y\n"`,
		`screen -S agent -X stuff $'y\r'`,
		`screen -S a -X stuff 'countersign gate trust\n'`,
		`tmux send-keys -t agent y Enter`,
		`tmux send-keys -t 1 'countersign gate trust' Enter`,
		`tmux send-keys -t main:0 "1" C-m`,
		`tmux set-buffer 'y' \; paste-buffer -t agent`,
		`tmux paste-buffer -t agent`,
		`xdotool type y`,
		`wtype y`,
		`ydotool type y`,
		`osascript -e 'tell application "System Events" to keystroke "y"'`,
		`ttyecho /dev/pts/0 y`,
		`zellij action write-chars y`,
		`kitty @ send-text y`,
		`wezterm cli send-text y`,
		`expect -c 'spawn claude; send y'`,
		`python3 -c "import fcntl,termios; fcntl.ioctl(0, termios.TIOCSTI, 'y')"`,
	} {
		if got, answer := m.decide(command, m.web); got != agents.Ask && got != agents.Deny {
			t.Errorf("%q passes: %s", command, answer)
		}
	}
	for _, command := range []string{
		`tmux new -d -s dev 'npm run dev'`,
		`tmux send-keys -t dev 'npm run dev' Enter`,
		`tmux send-keys -t dev C-c`,
		`tmux send-keys -t server 'npm test' Enter`,
		`tmux capture-pane -p -t dev`,
		`screen -dmS dev npm run dev`,
		`screen -S dev -X quit`,
		`claude -p 'say hi'`,
		`claude --resume x`,
		`claude --model opus -p x`,
		`gemini -p hi`,
		`goose run -t x`,
		`goose session`,
		`openhands -t x`,
		`env FOO=1 claude -p x`,
		`env -u ANTHROPIC_API_KEY claude -p x`,
		`env -u CLAUDECODE claude -p x`,
		`codex exec x`,
		`claude -c`,
		`claude --allowedTools "Read" -p x`,
		`claude --allowedTools "Read,Grep" -p x`,
		`claude --permission-mode plan`,
		`env -i PATH=$PATH make`,
		`unset HOME; make`,
		`tmux send-keys -t dev 'yes | head' Enter`, `tmux send-keys -t editor Down Down Enter`, `screen -S dev -X stuff 'npm test\n'`, `sudo npm i -g @anthropic-ai/claude-code`, `claude --allowedTools "Bash(npm test)" -p x`,
	} {
		m.want(agents.Pass, command, m.web)
	}
}
