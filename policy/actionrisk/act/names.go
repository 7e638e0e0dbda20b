package act

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// SyntaxName reports whether a text is a valid name of a variable.
func SyntaxName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !scan.IsNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// WindowsShell returns the language of a Windows command interpreter, or "" for other executables.
func WindowsShell(exe string) string {
	switch strings.ToLower(strings.TrimSuffix(exe, ".exe")) {
	case "powershell", "pwsh", "powershell_ise":
		return "powershell"
	case "cmd":
		return "cmd"
	}
	return ""
}

// LooksShell reports whether a text in another language contains shell syntax that would run if
// the text were pasted into a shell.
func LooksShell(text string) bool {
	return strings.Contains(text, "$(") || strings.ContainsRune(text, '`') && !strings.ContainsAny(text, ";") ||
		strings.Contains(text, "&&") || strings.Contains(text, "||") && !strings.Contains(text, "'||'")
}

// KindTool is the kind of an item that is a tool call. The item's name is the effect that the
// tool's name suggests: destructive, money, write, read, shell, sql or unknown.
const KindTool = "tool"
