package actionrisk

import (
	"slices"
	"strings"
)

// client handles a command of the database client, or a statement end that runs
// the result of the query before it.
func (p *sqlParser) client(i int) {
	t := p.toks[i]
	text := p.text[t.start:t.end]
	if t.kind == sqlEnd {
		switch {
		case strings.HasPrefix(text, `\gexec`):
			p.generated(i)
		case strings.HasPrefix(text, `\g`) && strings.Contains(text, "|"):
			p.carry(text[strings.IndexByte(text, '|')+1:], "psql", i)
		case strings.HasPrefix(text, `\watch`):
			p.loop = true
		}
		return
	}
	name, rest, _ := strings.Cut(text, " ")
	if strings.HasPrefix(text, `\!`) || strings.HasPrefix(text, "!") {
		p.carry(strings.TrimLeft(text, `\!`), "client-shell", i)
		return
	}
	switch name {
	case `\copy`:
		p.copyMeta(rest, i)
	case ".shell", ".system":
		p.carry(rest, "client-shell", i)
	case `\o`, `\w`, `\out`, `\write`, ".output", ".once", ".import", ".excel":
		if at := strings.IndexByte(rest, '|'); at >= 0 {
			p.carry(strings.Trim(rest[at+1:], `'"`), "client-shell", i)
		}
		p.out.readOnly = false
	case ".load":
		p.add("server.program", rest, i, i+1)
	case ".restore":
		p.add("replace", rest, i, i+1)
	default:
		if strings.HasPrefix(name, `\d`) || slices.Contains(clientReads, name) {
			return
		}
		p.out.readOnly = false
	}
}

// clientReads are client commands that only show something.
var clientReads = []string{`\l`, `\z`, `\x`, `\c`, `\q`, `\echo`, `\timing`, `\pset`, `\conninfo`, `\h`, `\?`, `\a`, `\t`, `\s`, `\p`, `\encoding`, `\sf`, `\sv`, `\l+`, `\connect`,

	".tables", ".schema", ".headers", ".mode", ".databases", ".indexes", ".indices", ".dump", ".quit", ".exit", ".help", ".show", ".width", ".timer",
	".stats", ".explain", ".fullschema", ".separator", ".nullvalue", ".version", ".header", ".eqp"}

func (p *sqlParser) carry(text, via string, i int) {
	p.out.shell = append(p.out.shell, sqlCarried{strings.TrimSpace(text), via, p.toks[i].start, p.toks[i].end})
}

// generated handles \gexec: every value of the query before it is run as SQL.
func (p *sqlParser) generated(i int) {
	lo := i
	for lo > 0 && p.toks[lo-1].kind != sqlEnd {
		lo--
	}
	for j := lo; j < i; j++ {
		if p.is(j, "select") {
			text, known := p.literal(j+1, p.firstOf(j+1, i, "from", "where"))
			if known && p.nested(text, "gexec", lo, i) {
				return
			}
		}
	}
	p.add("dynamic", "", lo, i+1)
}

// copyMeta handles psql's \copy, which reads and writes files of the client.
func (p *sqlParser) copyMeta(rest string, i int) {
	lower := strings.ToLower(rest)
	if at := strings.Index(lower, " program "); at >= 0 {
		p.carry(strings.Trim(strings.TrimSpace(rest[at+len(" program "):]), `'`), "copy-program", i)
	}
	if strings.Contains(lower, " from ") && !strings.HasPrefix(strings.TrimSpace(lower), "(") {
		p.add("insert", "", i, i+1)
	}
}
