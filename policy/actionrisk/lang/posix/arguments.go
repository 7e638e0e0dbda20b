package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

var noTool = &facts.Tool{}

// carrierTool is how a wrapper without an entry of its own reads its arguments.
var carrierTool = &facts.Tool{First: true}

// parseArgs fills opts and operands by the tool's way of reading.
func parseArgs(c *facts.Set, v *act.Invocation) {
	spec := c.Program(v.Exe).Options
	if spec == nil {
		spec = noTool
		if slices.ContainsFunc(c.Program(v.Exe).Carries, func(w *facts.Wrapper) bool { return w.Argv && len(w.Sub) == 0 }) {
			spec = carrierTool
		}
	}
	sub := noTool
	v.After = -1
	v.Opts, v.Operands = make([]act.Option, 0, len(v.Argv)), make([]act.Word, 0, len(v.Argv))
	greedy := func(name string, next int) bool {
		return spec.Greedy && next < len(v.Argv) && !strings.HasPrefix(v.Argv[next].Text, "-") && !slices.Contains(spec.Flags, name) && !strings.HasPrefix(name, "--no-")
	}
	takes := func(name string) bool { return slices.Contains(spec.Values, name) || slices.Contains(sub.Values, name) }
	for i := 1; i < len(v.Argv); i++ {
		w := v.Argv[i]
		t := w.Text
		if len(spec.Inner) > 0 && slices.Contains(spec.Inner, t) {
			v.Opts = append(v.Opts, act.Option{Name: t})
			for i++; i < len(v.Argv) && v.Argv[i].Text != ";" && v.Argv[i].Text != "+"; i++ {
			}
			continue
		}
		switch {
		case len(t) > 1 && t[0] == '+' && strings.Trim(t[1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && len(v.Operands) == 0 && v.After < 0 && slices.Contains(c.Groups["shells"], v.Exe):
			if t == "+o" || t == "+O" { // turns an option of the shell off
				i++
			}
		case len(v.Operands) == 0 && v.After < 0 && slices.Contains(spec.Tracks, t):
		case v.After >= 0 || len(t) < 2 || t[0] != '-' || isNegative(t):
			v.Operands = append(v.Operands, w)
			if len(v.Operands) == 1 && spec.Subs != nil {
				if s := spec.Subs[t]; s != nil {
					sub = s
				}
			}
			if len(v.Operands) == 2 && spec.Subs != nil {
				if s := spec.Subs[v.Operands[0].Text+" "+t]; s != nil {
					sub = s
					continue
				}
			}
			if v.After < 0 && (spec.First || sub.First && len(v.Operands) > 1) {
				v.After = len(v.Operands)
			}
		case t == "--":
			v.After = len(v.Operands)
		case t[1] == '-' || spec.Long || sub.Long:
			name, value, given := strings.Cut(t, "=")
			o := act.Option{Name: name, Given: given}
			if given {
				o.Value = w.Tail(len(name) + 1)
				o.Value.Text = value
			} else if takes(name) && i+1 < len(v.Argv) || greedy(name, i+1) {
				i++
				o.Value, o.Given = v.Argv[i], true
			}
			v.Opts = append(v.Opts, o)
		default:
			for j := 1; j < len(t); j++ {
				o := act.Option{Name: shortName(t[j])}
				if takes(o.Name) {
					if o.Given = true; j+1 < len(t) {
						o.Value = w.Tail(j + 1)
					} else if i+1 < len(v.Argv) {
						i++
						o.Value = v.Argv[i]
					}
					v.Opts = append(v.Opts, o)
					break
				}
				v.Opts = append(v.Opts, o)
				if j == 1 && len(t) > 2 && (t[2] == '=' || t[2] == scan.Hole) {
					v.Opts[len(v.Opts)-1].Value, v.Opts[len(v.Opts)-1].Given = w.Tail(3), true
					break
				}
			}
			if len(t) > 2 {
				v.Opts = append(v.Opts, act.Option{Name: t})
			}
		}
	}
	v.Data = 0
	for _, s := range [...]*facts.Tool{spec, sub} {
		if s.Data > 0 && !slices.ContainsFunc(s.DataUnless, v.Has) {
			v.Data = min(s.Data, len(v.Operands))
		}
	}
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

// isNegative: -1 and -0.5 are numbers, not options, unless a single digit such
// as kill -9 or head -5, which no table asks for.
func isNegative(t string) bool {
	return t[1] == '.' || t[1] >= '0' && t[1] <= '9' && strings.ContainsRune(t, '.')
}
