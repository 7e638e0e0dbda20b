package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Many programs delete, overwrite, read or send files with an uncommon option: tar --remove-files,
// sort -o, install -m 4755, exiftool '-Comment<=key'. A row of effects maps such an option to a
// plain command, which the rules then judge. So no program needs rules of its own.

// effect is an effect that a program has with certain options.
type effect struct {
	Sub []string `json:"sub,omitempty"` // only for these subcommands
	// All, Any and None are options or words that must or must not be given: "--move", "-o=*bind*"
	// with a pattern for the value, "~m" for the letter m in a cluster of short options.
	All  []string `json:"all,omitempty"`
	Any  []string `json:"any,omitempty"`
	None []string `json:"none,omitempty"`
	// Take selects the words that the plain command acts on: the values of options, or "operands",
	// "first", "second" and "last" of the operands after Sub and Skip.
	Take []string `json:"take"`
	Skip int      `json:"skip,omitempty"`
	But  []string `json:"but,omitempty"` // without the words that contain one of these
	In   []string `json:"in,omitempty"`  // options that name the folder of the taken words
	// As is the plain command: the words before those taken, or ">" or ">>" for a redirection to
	// each of them, or a keyword that begins with @ (see takeEffect in lang/posix).
	As []string `json:"as"`
}

// takesValues adds the options that have a value in an effect's row to the options that take a
// value, even if programs.json does not list them as such.
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

// valued returns the options that have a value according to the effect's row.
func (f *effect) valued() (options []string) {
	for _, o := range slices.Concat(f.Take, f.In) {
		if strings.HasPrefix(o, "-") {
			options = append(options, o)
		}
	}
	for _, o := range slices.Concat(f.All, f.Any, f.None) { // an option with a value: "-o=*bind*"
		if name, _, valued := strings.Cut(o, "="); valued && strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "--") {
			options = append(options, name)
		}
	}
	return options
}

// Holds reports whether the invocation has the effect.
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

// Words returns the words that the plain command acts on.
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
