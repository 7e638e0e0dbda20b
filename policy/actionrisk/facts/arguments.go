package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

var noTool = &Tool{}

// carrierTool describes the arguments of a wrapper that has no entry: its options end at the first
// operand.
var carrierTool = &Tool{First: true}

// argReader parses the words of an invocation as its Tool describes.
type argReader struct {
	v         *act.Invocation
	spec, sub *Tool // how the program's and its subcommand's arguments are parsed
	switches  bool  // the program is a shell, which accepts options such as +o
	i         int   // index of the current word
}

// ReadArguments sets the options and operands of an invocation, as the tables describe them for
// its program.
func (c *Set) ReadArguments(v *act.Invocation) {
	p := c.Program(v.Exe)
	r := argReader{v: v, spec: p.Options, sub: noTool, switches: c.In("shells", v.Exe)}
	if r.spec == nil {
		r.spec = noTool
		if slices.ContainsFunc(p.Carries, func(w *Wrapper) bool { return w.Argv && len(w.Sub) == 0 }) {
			r.spec = carrierTool
		}
	}
	v.After, v.Method = -1, ""
	dashes := 0
	for i := range v.Argv {
		if strings.HasPrefix(v.Argv[i].Text, "-") {
			dashes++
		}
	}
	v.Opts, v.Operands = make([]act.Option, 0, dashes), make([]act.Word, 0, len(v.Argv)-min(1, len(v.Argv)))
	for r.i = 1; r.i < len(v.Argv); r.i++ {
		r.word(v.Argv[r.i])
	}
	v.Data = 0
	for _, s := range [...]*Tool{r.spec, r.sub} {
		if s.Data > 0 && !slices.ContainsFunc(s.DataUnless, v.Has) {
			v.Data = min(s.Data, len(v.Operands))
		}
	}
}

// word parses one word, and the words after it that belong to it.
func (r *argReader) word(w act.Word) {
	v, t := r.v, w.Text
	switch {
	case slices.Contains(r.spec.Inner, t):
		r.inner(t)
	case len(v.Operands) == 0 && v.After < 0 && r.passed(t):
	case v.After >= 0 || !isOption(t):
		r.operand(w)
	case t == "--":
		v.After = len(v.Operands)
	case t[1] == '-' || r.spec.Long || r.sub.Long:
		r.long(w)
	default:
		r.cluster(w)
	}
}

// passed skips a word before the operands that is neither an option nor an operand, such as +x,
// which turns an option of a shell off.
func (r *argReader) passed(t string) bool {
	if !r.switches || len(t) < 2 || t[0] != '+' || strings.Trim(t[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return slices.Contains(r.spec.Tracks, t)
	}
	if t == "+o" || t == "+O" { // the name of the option follows
		r.i++
	}
	return true
}

// isOption reports whether a word is an option: a dash and more. A word such as -0.5 or -.5 is a
// number. A word such as -9 is an option, as in kill -9 or head -5.
func isOption(t string) bool {
	return len(t) > 1 && t[0] == '-' && t[1] != '.' && !(t[1] >= '0' && t[1] <= '9' && strings.ContainsRune(t, '.'))
}

// inner skips the command that an option begins, up to ";" or "+": find -exec … ;
func (r *argReader) inner(option string) {
	r.v.Opts = append(r.v.Opts, act.Option{Name: option})
	for r.i++; r.i < len(r.v.Argv) && r.v.Argv[r.i].Text != ";" && r.v.Argv[r.i].Text != "+"; r.i++ {
	}
}

// operand adds an operand. The first one or two may name a subcommand.
func (r *argReader) operand(w act.Word) {
	v := r.v
	v.Operands = append(v.Operands, w)
	switch len(v.Operands) {
	case 1:
		if s := r.spec.Subs.Get(w.Text); s != nil {
			r.sub = s
		}
	case 2:
		if s := r.spec.Subs.Get(v.Operands[0].Text + " " + w.Text); s != nil {
			r.sub = s
			return
		}
	}
	if v.After < 0 && (r.spec.First || r.sub.First && len(v.Operands) > 1 || slices.ContainsFunc(r.spec.FirstWith, v.Has)) {
		v.After = len(v.Operands)
	}
}

// long parses --name, --name=value, or --name with the next word as its value.
func (r *argReader) long(w act.Word) {
	name, value, given := strings.Cut(w.Text, "=")
	o := act.Option{Name: name, Given: given}
	switch {
	case given:
		o.Value = w.Tail(len(name) + 1)
		o.Value.Text = value
	case r.takes(name) && r.i+1 < len(r.v.Argv) || r.greedy(name):
		r.i++
		o.Value, o.Given = r.v.Argv[r.i], true
	}
	r.v.Opts = append(r.v.Opts, o)
}

// cluster parses short options such as -abc. The last one may have a value: -ovalue, -o value or
// -o=value. The whole word is also added as one option.
func (r *argReader) cluster(w act.Word) {
	v, t := r.v, w.Text
	for j := 1; j < len(t); j++ {
		o := act.Option{Name: shortName(t[j])}
		if r.takes(o.Name) {
			if o.Given = true; j+1 < len(t) {
				o.Value = w.Tail(j + 1)
			} else if r.i+1 < len(v.Argv) {
				r.i++
				o.Value = v.Argv[r.i]
			}
			v.Opts = append(v.Opts, o)
			break
		}
		if j == 1 && len(t) > 2 && (t[2] == '=' || t[2] == scan.Hole) {
			o.Value, o.Given = w.Tail(3), true
			v.Opts = append(v.Opts, o)
			break
		}
		v.Opts = append(v.Opts, o)
	}
	if len(t) > 2 {
		v.Opts = append(v.Opts, act.Option{Name: t})
	}
}

// takes reports whether an option takes the next word as its value.
func (r *argReader) takes(name string) bool {
	return slices.Contains(r.spec.Values, name) || slices.Contains(r.sub.Values, name)
}

// greedy reports whether an unlisted long option takes the next word as its value.
func (r *argReader) greedy(name string) bool {
	next := r.i + 1
	return r.spec.Greedy && next < len(r.v.Argv) && !strings.HasPrefix(r.v.Argv[next].Text, "-") && !slices.Contains(r.spec.Flags, name) && !strings.HasPrefix(name, "--no-")
}

var shortNames = func() (names [128]string) {
	for i := range names {
		names[i] = "-" + string(rune(i))
	}
	return names
}()

func shortName(c byte) string {
	if c < 128 {
		return shortNames[c]
	}
	return "-?"
}
