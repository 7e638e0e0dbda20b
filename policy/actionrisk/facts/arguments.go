package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

var noTool = &Tool{}

// carrierTool is how a wrapper without an entry of its own reads its arguments.
var carrierTool = &Tool{First: true}

// argReader reads the words of a call by the tool's way of reading.
type argReader struct {
	v         *act.Invocation
	spec, sub *Tool // of the whole tool, of its subcommand
	switches  bool  // it is a shell, which takes +o
	i         int   // the word that is read
}

// ReadArguments fills the options and operands of a call by its program's way of reading.
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

// word reads one word, and those after it that belong to it.
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

// passed: a first word that is neither an option nor an operand, such as +x, which turns
// an option of a shell off.
func (r *argReader) passed(t string) bool {
	if !r.switches || len(t) < 2 || t[0] != '+' || strings.Trim(t[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return slices.Contains(r.spec.Tracks, t)
	}
	if t == "+o" || t == "+O" { // whose name follows
		r.i++
	}
	return true
}

// isOption: a dash with something after it. -1 and -0.5 are numbers, unless a single
// digit such as kill -9 or head -5, which no table asks for.
func isOption(t string) bool {
	return len(t) > 1 && t[0] == '-' && t[1] != '.' && !(t[1] >= '0' && t[1] <= '9' && strings.ContainsRune(t, '.'))
}

// inner passes over the words of a command that an option begins: -exec … ;
func (r *argReader) inner(option string) {
	r.v.Opts = append(r.v.Opts, act.Option{Name: option})
	for r.i++; r.i < len(r.v.Argv) && r.v.Argv[r.i].Text != ";" && r.v.Argv[r.i].Text != "+"; r.i++ {
	}
}

// operand takes a word that is no option; one or two may name a subcommand.
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

// long reads --name, --name=value, or --name and its value.
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

// cluster reads -abc, where the last one may have a value: -ovalue, -o value, -o=value.
// It is an option by all of its letters as well.
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

// takes tells whether an option takes the next word.
func (r *argReader) takes(name string) bool {
	return slices.Contains(r.spec.Values, name) || slices.Contains(r.sub.Values, name)
}

// greedy tells whether a long option of which nothing is known takes the next word.
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
