package facts

import (
	"slices"
)

// Tool says how a program reads its arguments.
type Tool struct {
	// Sub, if given, is the subcommand the entry is about ("commit"); an entry
	// without it holds for the whole tool.
	Sub []string `json:"sub,omitempty"`
	// Values are the options that take the next word: "-m", "--author".
	Values []string `json:"values,omitempty"`
	// Long: a single dash begins a long option, short ones are never joined.
	Long bool `json:"long,omitempty"`
	// First: options end at the first operand.
	First bool `json:"first,omitempty"`
	// FirstWith: so they do if one of these was given: runuser -u bob rm -rf x.
	FirstWith []string `json:"firstWith,omitempty"`
	// Inner words begin a command of their own, which ends at ";" or "+".
	Inner []string `json:"inner,omitempty"`
	// Greedy means that every long option takes the next word as its value,
	// unless that word is an option or the long option is listed in Flags.
	Greedy bool     `json:"greedy,omitempty"`
	Flags  []string `json:"flags,omitempty"`
	// Data is how many leading operands are data, not names of things (the
	// pattern of grep); none if one of DataUnless is given.
	Data       int      `json:"data,omitempty"`
	DataUnless []string `json:"dataUnless,omitempty"`
	// Vars are variables from which it takes options: "NAME" holds options, "NAME=-x"
	// the value of one, "NAME?=-x" switches one on, "NAME_*" holds those of the
	// subcommand that stands for the star.
	Vars []string `json:"vars,omitempty"`
	// Tracks are first words that change nothing in what the rest means: gcloud beta.
	Tracks []string `json:"tracks,omitempty"`

	Subs Dict[*Tool] `json:"-"`
	Made bool        `json:"-"` // by another table: says nothing about the program as a whole
}

// addValues notes options that take the next word.
func (t *Tool) addValues(options []string) {
	t.Values = slices.Clip(t.Values)
	for _, o := range options {
		if !slices.Contains(t.Values, o) {
			t.Values = append(t.Values, o)
		}
	}
}
