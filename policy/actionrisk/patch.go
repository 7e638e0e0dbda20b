package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// filePatch is what a patch does to one file.
type filePatch struct {
	path    string
	added   string // the lines it adds
	deletes bool
}

// maxPatches is how many files of one patch are judged.
const maxPatches = 32

// patches reads a unified diff, or the form "*** Update File: x" that coding agents
// use. nil if the text is neither.
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

// patchHeader reads the line that begins a file's part.
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

// runPatch judges a patch as the commands that write and delete the same files, and
// tells whether the text is one.
func (e *engine) runPatch(src *source) bool {
	if src.depth >= scan.MaxDepth || !e.budget.spend(len(src.text)/8) {
		return false
	}
	list := patches(src.text)
	for _, p := range list {
		inner := *src
		inner.at, inner.depth, inner.span = -1, src.depth+1, src.span
		file := scan.Quote(outOfTree(p.path))
		switch {
		case p.deletes:
			inner.text = "rm " + file
		case p.added != "" && len(p.added) < scan.MaxDecoded:
			inner.text = "printf %s " + scan.Quote(p.added) + " >> " + file
		default:
			continue
		}
		e.front.script(&shell{e: e}, &inner, flow{})
	}
	return len(list) > 0
}

// patchFiles judges the patch that a program is given as its input or its operand.
func patchFiles(sh *shell, v *invocation) bool {
	switch v.exe {
	case "apply_patch", "applypatch", "patch":
	case "git":
		if len(v.operands) == 0 || v.operands[0].Text != "apply" && v.operands[0].Text != "am" {
			return false
		}
	default:
		return false
	}
	text := v.stdin.word
	if !v.stdin.known || text.Text == "" {
		if len(v.operands) == 0 || !strings.Contains(v.operands[len(v.operands)-1].Text, "\n") {
			return false
		}
		text = v.operands[len(v.operands)-1]
	}
	src := sh.src.inside(text, v.exe)
	sh.e.runPatch(&src)
	return false
}
