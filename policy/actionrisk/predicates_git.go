package actionrisk

import "strings"

// branchClass of a name: protected names are whole segments, never substrings.
func protectedBranch(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "refs/heads/"), "origin/")
	switch name {
	case "main", "master", "trunk", "stable", "live", "production", "prod", "release", "mainline":
		return true
	}
	first, _, nested := strings.Cut(name, "/")
	if nested && (first == "release" || first == "releases" || first == "hotfix") {
		return true
	}
	return strings.HasPrefix(name, "prod-") || strings.HasPrefix(name, "production-") || strings.HasPrefix(name, "release-")
}

// refspecIs looks at what git push is about. Kinds: protected (a destination is
// a protected branch), topic (all destinations named, none protected), unnamed
// (none named), head (the checked-out branch, not known), force ("+" in front), delete (":name").
func refspecIs(e *engine, it *item, args []string) (Word, bool) {
	v := it.inv
	specs := v.operands[min(1, len(v.operands)):]
	remoteNamed := len(specs) > 0
	if remoteNamed {
		specs = specs[1:]
	}
	for _, a := range args {
		if a == "unnamed" && len(specs) == 0 {
			return Word{}, true
		}
		topics := 0
		for _, w := range specs {
			t, plus := strings.CutPrefix(w.Text, "+")
			src, dst, colon := strings.Cut(t, ":")
			if !colon {
				dst = src
			}
			if rest, ok := strings.CutPrefix(dst, "+"); ok {
				dst, plus = rest, true
			}
			if dst == "HEAD" || dst == "@" {
				if dst = e.action.Branch; dst == "" {
					if a == "head" {
						return w, true
					}
					continue
				}
			}
			prot := protectedBranch(dst)
			switch {
			case a == "protected" && prot, a == "force" && plus, a == "force-protected" && plus && prot,
				a == "delete" && colon && src == "", a == "delete-protected" && colon && src == "" && prot,
				a == "tag" && strings.HasPrefix(dst, "refs/tags/"),
				a == "unknown" && !w.known():
				return w, true
			case a == "topic" && !prot && w.known():
				topics++
			}
		}
		if a == "topic" && topics > 0 && topics == len(specs) {
			return specs[0], true
		}
	}
	return Word{}, false
}

func branchIs(e *engine, _ *item, _ []string) (Word, bool) { return Word{}, e.context.branch != "" }

// discards: git checkout with paths throws changes away; with a branch it does not.
func discards(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.has("-b") || v.has("-B") || v.has("--orphan") || v.has("-p") || v.has("--patch") {
		return Word{}, false
	}
	if v.after > 0 && v.after < len(v.operands) {
		w := v.operands[v.after]
		return w, e.classOf(w, "")&isGenerated == 0
	}
	if len(v.operands) > 2 && !v.has("-t") && !v.has("--track") && !v.has("-l") { // behind a commit only paths can stand
		w := v.operands[len(v.operands)-1]
		return w, e.classOf(w, "")&isGenerated == 0
	}
	for _, w := range v.operands[min(1, len(v.operands)):] {
		switch {
		case w.Text == "." || w.Text == ".." || strings.HasPrefix(w.Text, "../") || w.Text == "*" || w.Text == ":/" || strings.HasPrefix(w.Text, "./"), w.Glob:
			return w, true
		case looksFile(w.Text) && e.classOf(w, "")&isGenerated == 0:
			return w, true
		}
	}
	return Word{}, false
}

// looksFile: a name with a common file extension is a file, not a branch.
func looksFile(t string) bool {
	i := strings.LastIndexByte(t, '.')
	if i < 1 || len(t)-i > 5 || i+1 == len(t) {
		return false
	}
	return strings.Trim(t[i+1:], "abcdefghijklmnopqrstuvwxyz") == "" && !strings.HasPrefix(t, "v")
}

// generated: every path is a lock file or a snapshot.
func generated(e *engine, it *item, _ []string) (Word, bool) {
	paths := it.inv.operands[min(1, len(it.inv.operands)):]
	for _, w := range paths {
		if e.classOf(w, "")&isGenerated == 0 {
			return Word{}, false
		}
	}
	return Word{}, len(paths) > 0
}

func configValue(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) > 2 && strings.HasPrefix(strings.ToLower(v.operands[1].Text), "alias.") && !strings.HasPrefix(v.operands[2].Text, "!") {
		return Word{}, false // another name of a git command, which is judged itself
	}
	return Word{}, len(v.operands) > 2 && !v.has("--get") && !v.has("--unset")
}

// emptied: a redirection that writes nothing.
func emptied(_ *engine, it *item, _ []string) (Word, bool) {
	in := it.inv.stdin
	return Word{}, in.known && strings.TrimSpace(in.word.Text) == ""
}
