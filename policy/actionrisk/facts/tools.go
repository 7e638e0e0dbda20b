package facts

import (
	"slices"
)

// Tool describes how a program parses its arguments.
type Tool struct {
	// Sub are the subcommands that the entry is for ("commit"). Without Sub it is for the whole
	// program.
	Sub []string `json:"sub,omitempty"`
	// Values are the options that take the next word as their value: "-m", "--author".
	Values []string `json:"values,omitempty"`
	// Long: long options begin with a single dash, and short options cannot be joined.
	Long bool `json:"long,omitempty"`
	// First: options end at the first operand.
	First bool `json:"first,omitempty"`
	// FirstWith: options end at the first operand if one of these is given: runuser -u bob rm -rf
	// x.
	FirstWith []string `json:"firstWith,omitempty"`
	// Inner are options that begin another command, which ends at ";" or "+".
	Inner []string `json:"inner,omitempty"`
	// Greedy means that every long option takes the next word as its value, unless that word is an
	// option or the long option is listed in Flags.
	Greedy bool     `json:"greedy,omitempty"`
	Flags  []string `json:"flags,omitempty"`
	// Data is the number of leading operands that are data, not names (grep's pattern). It is 0 if
	// one of DataUnless is given.
	Data       int      `json:"data,omitempty"`
	DataUnless []string `json:"dataUnless,omitempty"`
	// Vars are environment variables that contain options: "NAME" has options, "NAME=-x" the value
	// of the option -x, "NAME?=-x" turns -x on, "NAME_*" has options of the subcommand that the
	// star matches.
	Vars []string `json:"vars,omitempty"`
	// Tracks are first words that do not change the meaning of the rest: gcloud beta.
	Tracks []string `json:"tracks,omitempty"`

	Subs Dict[*Tool] `json:"-"`
	Made bool        `json:"-"` // derived from another table, so it does not describe the whole program
}

// addValues adds options that take the next word as their value.
func (t *Tool) addValues(options []string) {
	t.Values = slices.Clip(t.Values)
	for _, o := range options {
		if !slices.Contains(t.Values, o) {
			t.Values = append(t.Values, o)
		}
	}
}
