package toolcall

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// filePatch is the part of a patch for one file.
type filePatch struct {
	path    string
	added   string // the added lines, joined with line feeds
	deletes bool
}

// maxPatches is the largest number of files of one patch that are judged.
const maxPatches = 32

// patches parses a unified diff, or the form "*** Update File: x" that coding agents use. It
// returns nil if the text is neither.
func patches(text string) []filePatch {
	if !strings.Contains(text, "*** ") && !strings.Contains(text, "+++ ") {
		return nil
	}
	var out []filePatch
	var added []string
	flush := func() {
		if len(out) > 0 {
			out[len(out)-1].added = strings.Join(added, "\n")
		}
		added = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		p, starts := patchHeader(line)
		switch {
		case starts && len(out) < maxPatches:
			flush()
			out = append(out, p)
		case strings.HasPrefix(line, "+"):
			added = append(added, line[1:])
		}
	}
	flush()
	return out
}

// patchHeader parses the line that begins the part for a file, and returns false for other lines.
func patchHeader(line string) (filePatch, bool) {
	for _, h := range [...]struct {
		prefix  string
		deletes bool
	}{{"*** Update File: ", false}, {"*** Add File: ", false}, {"*** Delete File: ", true}, {"*** Move to: ", false}, {"+++ ", false}} {
		if rest, ok := strings.CutPrefix(line, h.prefix); ok {
			if h.prefix == "+++ " {
				rest, _, _ = strings.Cut(strings.TrimPrefix(rest, "b/"), "\t")
			}
			return filePatch{path: strings.TrimSpace(rest), deletes: h.deletes}, true
		}
	}
	return filePatch{}, false
}

// runPatch judges the files that a patch writes and deletes, and reports whether the text is a
// patch.
func runPatch(e *interp.Env, src *act.Source) bool {
	if src.Depth >= scan.MaxDepth || !e.Budget.Spend(len(src.Text)/8) {
		return false
	}
	list := patches(src.Text)
	for _, p := range list {
		f := act.Effect{Op: act.DeleteFile, On: []act.Word{{Text: outOfTree(p.path), At: -1, Span: src.Span}}, To: len(src.Text)}
		if !p.deletes {
			f.Op, f.Writes = act.AppendTo, p.added
		}
		if p.deletes || p.added != "" && len(p.added) < scan.MaxDecoded {
			(&interp.Process{Env: e, Src: src}).Emit(src, "", f)
		}
	}
	return len(list) > 0
}

// PatchFiles judges the patch in the input or the last operand of a program such as git apply. It
// always returns false, because it matches no rule for the call itself.
func PatchFiles(sh *interp.Process, v *act.Invocation) bool {
	switch v.Exe {
	case "apply_patch", "applypatch", "patch":
	case "git":
		if len(v.Operands) == 0 || v.Operands[0].Text != "apply" && v.Operands[0].Text != "am" {
			return false
		}
	default:
		return false
	}
	text := v.Stdin.Word
	if !v.Stdin.Known || text.Text == "" {
		if len(v.Operands) == 0 || !strings.Contains(v.Operands[len(v.Operands)-1].Text, "\n") {
			return false
		}
		text = v.Operands[len(v.Operands)-1]
	}
	src := sh.Src.Inside(text, v.Exe)
	runPatch(sh.Env, &src)
	return false
}
