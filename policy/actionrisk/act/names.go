package act

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// SyntaxName tells whether a text can be the name of a variable.
func SyntaxName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !scan.IsNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// WindowsShell is the language of a Windows command interpreter, "" if exe is none.
func WindowsShell(exe string) string {
	switch strings.ToLower(strings.TrimSuffix(exe, ".exe")) {
	case "powershell", "pwsh", "powershell_ise":
		return "powershell"
	case "cmd":
		return "cmd"
	}
	return ""
}

// LooksShell: text of another language may still hold shell syntax that would
// run if it were pasted into a shell.
func LooksShell(text string) bool {
	return strings.Contains(text, "$(") || strings.ContainsRune(text, '`') && !strings.ContainsAny(text, ";") ||
		strings.Contains(text, "&&") || strings.Contains(text, "||") && !strings.Contains(text, "'||'")
}

// KindTool items are tool calls; their name is what the tool does by its name:
// destructive, money, write, read, shell, sql or unknown.
const KindTool = "tool"
