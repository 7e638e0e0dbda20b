package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/countersign/countersign/cmd/countersign/screen"
)

// helpAll is a flag that prints the help with all flags. Normally help hides the flags with the
// tag "rare", so that the common ones are easy to find.
type helpAll bool

// BeforeReset prints the help and ends the program, as --help does.
func (helpAll) BeforeReset(ctx *kong.Context) error {
	eachFlag(ctx.Model.Node, func(f *kong.Flag) { f.Hidden = f.Hidden && !f.Tag.Has("rare") })
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	ctx.Kong.Exit(0)
	return nil
}

// printHelp prints the help as the parser does, with a better usage line: it is wrapped, and flags
// of which only one is required are shown as alternatives.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	width := screen.UsualWidth
	if file, is := ctx.Stdout.(*os.File); is {
		width = screen.WidthOf(file)
	}
	for _, line := range screen.WrapWords("Usage: "+usage(ctx), width, "       ") {
		if _, err := fmt.Fprintln(ctx.Stdout, line); err != nil {
			return err
		}
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

func usage(ctx *kong.Context) string {
	command := ctx.Selected()
	if command == nil {
		return ctx.Model.Name + ctx.Model.Summary()
	}
	text, alternatives := ctx.Model.Name+" "+command.Summary(), map[string][]string{}
	for _, flags := range command.AllFlags(true) {
		for _, f := range flags {
			for _, group := range f.Xor {
				if f.Required {
					alternatives[group] = append(alternatives[group], f.Summary())
				}
			}
		}
	}
	for _, flags := range alternatives { // required flags of one xor group
		text = strings.Replace(text, strings.Join(flags, " "), "("+strings.Join(flags, " | ")+")", 1)
	}
	return text
}

// hideRare hides the rare flags in the help. They can still be used.
func hideRare(root *kong.Node) {
	eachFlag(root, func(f *kong.Flag) { f.Hidden = f.Hidden || f.Tag.Has("rare") })
}

func eachFlag(n *kong.Node, do func(*kong.Flag)) {
	for _, f := range n.Flags {
		do(f)
	}
	for _, child := range n.Children {
		eachFlag(child, do)
	}
}

// completionCmd prints a script that completes command lines in a shell. The script calls the
// program for the completions, so they always fit its version.
type completionCmd struct {
	Shell string   `arg:"" optional:"" enum:"bash,zsh,fish,powershell," default:"" help:"The shell: bash, zsh, fish or powershell."`
	Words []string `arg:"" optional:"" passthrough:"" hidden:"" help:"Used by the scripts: the words of the command line, of which the last may be incomplete."`
}

// Run prints the script for a shell. If no shell is named, it explains how to install a script. If
// words are given, it prints the completions of the last one.
func (c *completionCmd) Run(o *screen.Output, ctx *kong.Context) error {
	if c.Shell == "" {
		_, err := io.WriteString(o.Stdout, completionHelp)
		return err
	}
	if len(c.Words) == 0 {
		_, err := io.WriteString(o.Stdout, completionScripts[c.Shell])
		return err
	}
	words := c.Words[min(2, len(c.Words)):] // skip "--" and the name of the program
	if len(words) == 0 {
		words = []string{""}
	}
	if last := &words[len(words)-1]; c.Shell == "powershell" && *last == `""` {
		*last = ""
	}
	for _, word := range completions(ctx.Model.Node, words) {
		if _, err := fmt.Fprintln(o.Stdout, word); err != nil {
			return err
		}
	}
	return nil
}

const completionHelp = `countersign completion SHELL prints a script:
  bash  eval "$(countersign completion bash)"       in ~/.bashrc
  zsh   eval "$(countersign completion zsh)"        in ~/.zshrc, after compinit
  fish  countersign completion fish | source        in ~/.config/fish/config.fish
  powershell  countersign completion powershell | Out-String | Invoke-Expression   in $PROFILE
`

var completionScripts = map[string]string{
	"bash": `_countersign() {
	local IFS=$'\n'
	COMPREPLY=($(countersign completion bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null))
}
complete -o default -F _countersign countersign
`,
	"zsh": `_countersign() {
	local -a found
	found=("${(@f)$(countersign completion zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _countersign countersign
`,
	// PowerShell before 7.3 drops empty arguments, so the script passes an empty last word as two
	// quotation marks.
	"powershell": `Register-ArgumentCompleter -Native -CommandName countersign -ScriptBlock {
	param($wordToComplete, $commandAst, $cursorPosition)
	$words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
	if ($wordToComplete -eq '') { $words += '""' }
	countersign completion powershell -- @words 2>$null | ForEach-Object {
		[System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
	}
}
`,
	"fish": `complete -c countersign -a '(countersign completion fish -- (commandline -opc) (commandline -ct) 2>/dev/null)'
`,
}

// completions returns the commands, flags or values that can complete the last word. It returns
// none if a file name or free text is expected.
func completions(at *kong.Node, words []string) []string {
	flags := slices.Clone(at.Flags)
	var pending *kong.Flag // flag whose value is the next word
	// Follow the complete words to the selected command, and collect the flags on the way.
	for _, word := range words[:len(words)-1] {
		if pending != nil {
			pending = nil
			continue
		}
		if name, is := strings.CutPrefix(word, "--"); is {
			i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })
			if i >= 0 && !flags[i].IsBool() {
				pending = flags[i]
			}
			continue
		}
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word })
		if i >= 0 {
			at = at.Children[i]
			flags = append(flags, at.Flags...)
		}
	}
	if at.DefaultCmd != nil {
		flags = append(flags, at.DefaultCmd.Flags...)
	}
	// Complete the last word: the value of a flag, a flag, or a command or argument.
	var found []string
	last := words[len(words)-1]
	switch {
	case pending != nil:
		found = enumOf(pending.Value)
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden || f.Tag.Has("rare") {
				found = append(found, "--"+f.Name)
			}
		}
	default:
		for _, child := range at.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
		for _, p := range at.Positional {
			found = append(found, enumOf(p)...)
		}
	}
	found = slices.DeleteFunc(found, func(word string) bool { return word == "" || !strings.HasPrefix(word, last) })
	slices.Sort(found)
	return slices.Compact(found)
}

func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}
