package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Many programs delete, overwrite, read or send files by an option that is easily
// overlooked: tar --remove-files, sort -o, install -m 4755, exiftool '-Comment<=key'.
// A row of effects states such an option as a plain command, which the rules then
// judge, so that no program needs a rule of its own.

// effect is what a program does by its options.
type effect struct {
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// All, Any and None are options or words that must or must not be given:
	// "--move", "-o=*bind*" with a pattern for the value, "~m" for the letter m in a
	// cluster of short options.
	All  []string `json:"all,omitempty"`
	Any  []string `json:"any,omitempty"`
	None []string `json:"none,omitempty"`
	// Take are the words that the plain command is about: the values of options, or
	// "operands", "first", "second" and "last" of what is after Sub and Skip.
	Take []string `json:"take"`
	Skip int      `json:"skip,omitempty"`
	But  []string `json:"but,omitempty"` // not those in which one of these stands
	In   []string `json:"in,omitempty"`  // options that name the folder they are in
	// As is the plain command: words in front of those taken, ">" or ">>" for a
	// redirection to each, or one that begins with @ (see takeEffect in lang/posix).
	As []string `json:"as"`
}

// takesValues: an option whose value is taken has one, whether the tool's own entry
// says so or not.
func (p *Program) takesValues(f *effect) {
	if p.Options == nil {
		p.Options = &Tool{Made: true}
	}
	spec := p.Options
	if len(f.Sub) > 0 {
		word, _, _ := strings.Cut(f.Sub[0], " ")
		sub := Tool{}
		if old := spec.Subs.Get(word); old != nil {
			sub = *old
		}
		subs := spec.Subs.asMap()
		subs[word] = &sub
		spec.Subs = dictOf(subs)
		spec = &sub
	}
	spec.addValues(f.valued())
}

// valued are the options of which the row says that they have a value.
func (f *effect) valued() (options []string) {
	for _, o := range slices.Concat(f.Take, f.In) {
		if strings.HasPrefix(o, "-") {
			options = append(options, o)
		}
	}
	for _, o := range slices.Concat(f.All, f.Any, f.None) { // "-o=*bind*"
		if name, _, valued := strings.Cut(o, "="); valued && strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "--") {
			options = append(options, name)
		}
	}
	return options
}

// Holds tells whether the effect takes place in the invocation.
func (f *effect) Holds(v *act.Invocation) bool {
	if len(f.Sub) > 0 && !v.UnderAny(f.Sub) || slices.ContainsFunc(f.None, v.HasLike) {
		return false
	}
	for _, o := range f.All {
		if !v.HasLike(o) {
			return false
		}
	}
	return len(f.Any) == 0 || slices.ContainsFunc(f.Any, v.HasLike)
}

// Words are the words that the effect is about.
func (f *effect) Words(v *act.Invocation) []act.Word {
	rest := v.Operands[min(max(f.Skip+Depth(f.Sub), v.Data), len(v.Operands)):]
	var out []act.Word
	for _, take := range f.Take {
		switch take {
		case "operands":
			out = append(out, rest...)
		case "first":
			out = append(out, rest[:min(1, len(rest))]...)
		case "second":
			if len(rest) == 2 {
				out = append(out, rest[1])
			}
		case "last":
			out = append(out, rest[max(0, len(rest)-1):]...)
		default:
			for i := range v.Opts {
				if o := &v.Opts[i]; o.Given && o.Name == take {
					out = append(out, o.Value)
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(w act.Word) bool { return scan.HasAny(w.Text, f.But...) })
}
