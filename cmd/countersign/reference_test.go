package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/gate"
	"github.com/countersign/countersign/cmd/countersign/setting"
)

var update = flag.Bool("update", false, "write the reference pages of the documentation")

// The reference pages of commands and settings are generated from the declarations, so that they
// always describe the program.
func TestReferencePagesFollowTheDeclarations(t *testing.T) {
	root := wholeModel(t)
	for name, page := range map[string]string{"commands.md": commandsPage(root), "settings.md": settingsPage(root)} {
		path := filepath.Join("..", "..", "api", "site", "content", "docs", name)
		if *update {
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		stored, err := os.ReadFile(path)
		if err != nil || string(stored) != page {
			t.Errorf("%s does not say what the declarations say (%v): go test ./cmd/countersign -run ReferencePages -update", name, err)
		}
	}
}

// wholeModel returns the parser's model of the command line, with all flags.
func wholeModel(t *testing.T) *kong.Node {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Name("countersign"), kong.NamedMapper("days", kong.MapperFunc(gate.ReadDays)), setting.SecretsFromFiles, variables(""))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Node
}

// commandsPage returns the page of all commands with their arguments and flags. Settings are on
// another page, and the common flag --no-fetch is described once.
func commandsPage(root *kong.Node) string {
	var out strings.Builder
	out.WriteString(`---
title: Command line
description: Every command of countersign, with its arguments and flags.
updated: 2026-11-26
---

This page is for everyone who uses the command line: look up what a command does, and its arguments and flags. Results go to standard output, all other messages to standard error. The exit code is 0 after success, 1 if the result is negative (for example, a record was changed or an action needs approval), and 2 if the command failed.

Every command has ` + "`--json`" + ` (results as JSON), ` + "`--quiet` (only the result, no advice), `--color` (auto, always or never), `--help` and `--help-all`" + `. Commands that open a ledger also take its [settings](/docs/settings) as flags, and ` + "`--no-fetch`" + `, which never downloads a PostgreSQL.
`)
	for _, n := range root.Children {
		writeCommand(&out, n, "##")
	}
	return out.String()
}

func writeCommand(out *strings.Builder, n *kong.Node, heading string) {
	if n.Hidden {
		return
	}
	fmt.Fprintf(out, "\n%s %s\n\n%s\n", heading, strings.TrimPrefix(n.FullPath(), "countersign "), n.Help)
	if n.Leaf() || n.DefaultCmd != nil {
		fmt.Fprintf(out, "\n```\n%s\n```\n", n.FullPath()+summaryOf(n))
	}
	var rows []string
	for _, p := range n.Positional {
		if p.Tag != nil && !p.Tag.Hidden {
			rows = append(rows, "| `"+p.Summary()+"` | "+cell(p.Help)+" |")
		}
	}
	for _, f := range n.Flags {
		if len(f.Envs) == 0 && !f.Hidden && f.Name != "no-fetch" {
			rows = append(rows, "| `"+flagText(f)+"` | "+cell(f.Help)+" |")
		}
	}
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n| argument or flag | meaning |\n|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
	for _, child := range n.Children {
		writeCommand(out, child, "###")
	}
}

// summaryOf returns the arguments and required flags to show after a command's name.
func summaryOf(n *kong.Node) (text string) {
	for _, f := range n.Flags {
		if f.Required && len(f.Envs) == 0 {
			text += " " + flagText(f)
		}
	}
	for _, p := range n.Positional {
		if p.Tag != nil && !p.Tag.Hidden {
			text += " " + p.Summary()
		}
	}
	return text + " [flags]"
}

func flagText(f *kong.Flag) string {
	text := "--" + f.Name
	switch choices := slices.DeleteFunc(f.EnumSlice(), func(s string) bool { return s == "" }); {
	case f.IsBool():
	case len(choices) > 0:
		text += " " + strings.Join(choices, ",")
	case f.PlaceHolder != "":
		text += " " + f.FormatPlaceHolder()
	default:
		text += " " + strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '-')+1:])
	}
	return text
}

// settingsPage returns the page of all settings: the flags that also have an environment variable.
func settingsPage(root *kong.Node) string {
	var out strings.Builder
	out.WriteString(`---
title: Settings
description: Every setting of the service, with its environment name, flag, default and meaning.
updated: 2026-11-26
---

This page is for operators: look up a setting, and how to set it. A setting is a flag or an environment variable; if both are given, the flag is used. ` + "`countersign config`" + ` prints the value of each setting (secrets masked) and its source. For a secret prefer a file: set ` + "`NAME_FILE`" + ` to the path of a file that contains the value, such as ` + "`SIGNING_KEY_FILE`" + `. If a setting is invalid, the program stops with a message that names the setting, before it appends anything to the ledger.

Without any settings ` + "`countersign serve`" + ` runs with a private PostgreSQL and development keys, for this machine only. [Self-hosting](/docs/self-hosting) lists the settings that a permanent installation needs.
`)
	seen := map[string]bool{}
	var secrets []string
	for _, command := range []string{"serve", ""} {
		title, rows := "For serve", []string(nil)
		if command == "" {
			title = "For other commands"
		}
		for _, n := range root.Leaves(false) {
			if command != "" && n.Name != command {
				continue
			}
			for _, f := range n.Flags {
				if len(f.Envs) == 0 || seen[f.Envs[0]] {
					continue
				}
				seen[f.Envs[0]] = true
				value := ""
				if f.HasDefault && f.Default != "" {
					value = "`" + f.Default + "`"
				}
				if f.Tag.Has("secret") {
					secrets = append(secrets, f.Envs[0])
				}
				rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s | %s |", f.Envs[0], flagText(f), value, cell(f.Help)))
			}
		}
		slices.Sort(rows)
		fmt.Fprintf(&out, "\n## %s\n\n| setting | flag | default | meaning |\n|---|---|---|---|\n%s\n", title, strings.Join(rows, "\n"))
	}
	slices.Sort(secrets)
	fmt.Fprintf(&out, "\n## Secrets\n\nThese are never printed, and each has a `_FILE` form: `%s`.\n", strings.Join(secrets, "`, `"))
	return out.String()
}

// cell escapes a text for a table cell in Markdown.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
