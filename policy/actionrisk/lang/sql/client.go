package sql

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// clientAction is the way in which a client command uses its argument.
type clientAction byte

const (
	clientShows    clientAction = 's' // displays something, or sets how it is displayed
	clientShell    clientAction = '!' // a shell command to run
	clientIncludes clientAction = 'f' // a file of statements to run, or after "|" a program that prints them
	clientWrites   clientAction = 'w' // a file to write, or after "|" a program that receives the output
	clientReads    clientAction = 'r' // a file of data to read, or after "|" a program that prints it
	clientLoads    clientAction = 'l' // a library to load
	clientReplaces clientAction = 'x' // a file that overwrites the database
	clientExpands  clientAction = 'b' // a text whose backticks run commands
	clientDumps    clientAction = 'd' // prints the whole database
)

// clientCommands maps the client commands that begin with a backslash or a dot to their actions.
// No statement begins with these signs.
var clientCommands = func() map[string]clientAction {
	m := map[string]clientAction{}
	for action, names := range map[clientAction]string{
		clientShows: `\l \z \x \c \q \timing \pset \conninfo \h \? \a \t \s \p \encoding \sf \sv \l+ \connect \r \H \C \f \errverbose \password
			.tables .schema .headers .mode .databases .indexes .indices .quit .exit .help .show .width .timer .stats .explain .fullschema .separator .nullvalue .version .header .eqp .bail .changes .echo .prompt .parameter .open .cd .print .limit .lint .sha3sum .dbinfo .timeout .auth .columns .rows .maxrows .keyword .highlight`,
		clientShell:    `.shell .system .sh \P`,
		clientIncludes: `.read \i \ir \include \include_relative \. \source`,
		clientWrites:   `\o \w \out \write \T .output .once .excel .www .log .save .backup .clone .trace`,
		clientReads:    `.import`,
		clientDumps:    `.dump`,
		clientLoads:    `.load`,
		clientReplaces: `.restore`,
		clientExpands:  `\set \setenv \if \elif \echo \qecho \warn \prompt \unset \else \endif`,
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = action
		}
	}
	return m
}()

// lineCommand is a client command that begins with a word or sign of one client only.
type lineCommand struct {
	prefix string
	action clientAction
}

// lineCommands maps a client to its line commands. The prefixes are in lower case.
var lineCommands = sync.OnceValue(func() map[string][]lineCommand {
	return map[string][]lineCommand{
		"mysql":        {{"system ", clientShell}, {"pager ", clientShell}, {"nopager", clientShows}, {"source ", clientIncludes}, {"tee ", clientWrites}},
		"sqlplus":      {{"host ", clientShell}, {"ho ", clientShell}, {"!", clientShell}, {"$", clientShell}, {"@@", clientIncludes}, {"@", clientIncludes}, {"start ", clientIncludes}, {"spool off", clientShows}, {"spool ", clientWrites}},
		"sqlcmd":       {{":!!", clientShell}, {"!!", clientShell}, {":r ", clientIncludes}, {":out ", clientWrites}, {":error ", clientWrites}},
		"impala-shell": {{"shell ", clientShell}, {"!", clientShell}, {"source ", clientIncludes}, {"src ", clientIncludes}},
		"beeline":      {{"!sh ", clientShell}, {"!run ", clientIncludes}, {"!record ", clientWrites}},
		"hive":         {{"!", clientShell}, {"dfs ", clientShell}, {"source ", clientIncludes}},
		"spark-sql":    {{"!", clientShell}, {"source ", clientIncludes}},
		"cqlsh":        {{"source ", clientIncludes}, {"capture off", clientShows}, {"capture ", clientWrites}},
		"snowsql":      {{"!system ", clientShell}, {"!source ", clientIncludes}, {"!load ", clientIncludes}, {"!spool off", clientShows}, {"!spool ", clientWrites}},
		"isql-fb":      {{"shell ", clientShell}, {"input ", clientIncludes}, {"in ", clientIncludes}, {"output ", clientWrites}},
		"db2":          {{"!", clientShell}, {"host ", clientShell}},
		"bteq":         {{".os ", clientShell}, {".run file ", clientIncludes}, {".run file=", clientIncludes}},
		"nzsql":        {{`\! `, clientShell}},
		"exaplus":      {{"host ", clientShell}, {"@", clientIncludes}},
		"cypher-shell": {{":source ", clientIncludes}},
		"ij":           {{"run ", clientIncludes}},
	}
})

// sameLines maps a client to another client that has the same line commands.
var sameLines = map[string]string{"mariadb": "mysql", "mycli": "mysql", "mysqlsh": "mysql", "sqlcl": "sqlplus", "sql": "sqlplus", "osql": "sqlcmd", "mssql-cli": "sqlcmd", "sqlline": "beeline", "isql": "isql-fb"}

// client handles a command of the database client, or an end of a statement, such as \gexec, that
// does more than end it.
func (p *parser) client(i int) {
	text := p.textOf(i)
	if p.toks[i].kind == sqlEnd {
		p.clientEnd(text, i)
		return
	}
	if strings.HasPrefix(text, `\!`) || strings.HasPrefix(text, "!") {
		p.carry(strings.TrimLeft(text, `\!`), "client-shell", i)
		return
	}
	name, rest, _ := strings.Cut(text, " ")
	if name == `\copy` {
		p.copyMeta(rest, i)
		return
	}
	if words := scan.OptionWords(rest); name == `\setenv` && len(words) > 1 && (strings.HasSuffix(words[0], "PAGER") || strings.HasSuffix(words[0], "EDITOR")) {
		value := strings.Trim(strings.TrimSpace(rest[len(words[0]):]), `"'`)
		p.carry(strings.ReplaceAll(value, `\"`, `"`), "client-shell", i)
	}
	if action, ok := clientCommands[name]; ok {
		p.clientAct(action, rest, i)
	} else if !strings.HasPrefix(name, `\d`) {
		p.out.ReadOnly = false
	}
}

// clientEnd handles a command of psql that ends a statement and also runs its result (\gexec),
// sends the result to a program (\g |program) or repeats the statement (\watch).
func (p *parser) clientEnd(text string, i int) {
	switch {
	case strings.HasPrefix(text, `\gexec`):
		p.generated(i)
	case strings.HasPrefix(text, `\g`) && strings.Contains(text, "|"):
		p.carry(text[strings.IndexByte(text, '|')+1:], "psql", i)
	case strings.HasPrefix(text, `\watch`):
		p.loop = true
	}
}

// clientAct judges a client command by its action. rest is its argument.
func (p *parser) clientAct(action clientAction, rest string, i int) {
	rest = strings.TrimSpace(rest)
	switch {
	case action == clientExpands:
		p.expand(rest, i)
		return
	case action != clientShell && p.pipes(action, rest, i):
		p.out.ReadOnly = false
		return
	case action == clientShows:
		return
	}
	p.out.ReadOnly = false
	switch action {
	case clientDumps:
		p.out.Dumps = true
	case clientShell:
		p.carry(rest, "client-shell", i)
	case clientIncludes:
		name, _, _ := strings.Cut(strings.Trim(rest, `'";`), " ")
		p.out.Includes = append(p.out.Includes, name)
	case clientWrites:
		p.clientWrites(rest, i)
	case clientLoads:
		p.add("server.program", rest, i, i+1)
	case clientReplaces:
		p.add("replace", rest, i, i+1)
	}
}

// pipes judges the program after "|" in the argument, and reports whether there is one in place of
// the file name.
func (p *parser) pipes(action clientAction, rest string, i int) bool {
	words := scan.OptionWords(rest)
	at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "|") })
	if at < 0 || at > 0 && action != clientReads {
		return false
	}
	command, via := words[at][1:], "client-shell"
	if at == 0 && rest[0] == '|' { // the command is not in quotes
		command = rest[1:]
	}
	if action == clientWrites {
		via = "client-feeds" // the program reads the output of queries
	}
	p.carry(command, via, i)
	return true
}

// clientWrites records that the file named by the last word of the argument is overwritten.
func (p *parser) clientWrites(rest string, i int) {
	name := strings.Trim(rest[strings.LastIndexAny(rest, " \t")+1:], `'";`)
	if name != "" && name != "stdout" && name[0] != '-' {
		p.fileUse(FileUse{Op: act.Overwrite, Path: name, Via: "client-file"}, i, i+1)
	}
}

// expand judges the commands in backticks.
func (p *parser) expand(rest string, i int) {
	for k, command := range strings.Split(rest, "`") {
		if k%2 == 1 {
			p.carry(command, "client-shell", i)
		}
	}
}

func (p *parser) carry(text, via string, i int) {
	p.out.Shell = append(p.out.Shell, carried{strings.TrimSpace(text), via, p.toks[i].Start, p.toks[i].End})
}

// generated handles \gexec, which runs every value of the query before it as SQL.
func (p *parser) generated(i int) {
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

// copyMeta handles \copy of psql, which reads and writes files of the client.
func (p *parser) copyMeta(rest string, i int) {
	lower := strings.ToLower(rest)
	if at := strings.Index(lower, " program "); at >= 0 {
		p.carry(strings.Trim(strings.TrimSpace(rest[at+len(" program "):]), `'`), "copy-program", i)
	}
	if strings.Contains(lower, " from ") && !strings.HasPrefix(strings.TrimSpace(lower), "(") {
		p.add("insert", "", i, i+1)
	}
	if at := strings.LastIndex(lower, " to "); at >= 0 {
		if name, _, _ := strings.Cut(strings.TrimSpace(rest[at+len(" to "):]), " "); strings.ContainsAny(name, "/~") {
			p.fileUse(FileUse{Op: act.Overwrite, Path: strings.Trim(name, `'`), Via: "client-file"}, i, i+1)
		}
	}
}

// clientLines judges the line commands of a client in the whole text.
func (p *parser) clientLines(list []lineCommand) {
	if len(list) == 0 {
		return
	}
	at := 0
	for line := range strings.Lines(p.text) {
		start := at + len(line) - len(strings.TrimLeft(line, " \t"))
		at += len(line)
		line = strings.TrimSpace(line)
		if p.out.Steps++; line == "" || len(p.toks) == 0 {
			continue
		}
		lower := strings.ToLower(line[:min(len(line), 16)])
		for _, c := range list {
			if strings.HasPrefix(lower, c.prefix) {
				i, _ := slices.BinarySearchFunc(p.toks, start, func(t sqlToken, at int) int { return t.Start - at })
				rest := strings.TrimRight(line[len(c.prefix):], "; ")
				if c.prefix == "dfs " {
					rest = "hdfs dfs " + rest
				}
				p.clientAct(c.action, rest, min(i, len(p.toks)-1))
				break
			}
		}
	}
}

// ClientVariables describes how a client sets variables and how its text refers to them.
type ClientVariables struct {
	Define  []string // beginnings of a line that sets a variable, in lower case
	Options []string // client options that set a variable with name=value
	Forms   []string // forms of a reference, with "?" for the name
	Joined  bool     // join the words of a value without spaces
}

// PutVariables replaces the references to variables in a line by their values. forms are those of
// ClientVariables. A ":" that is part of a cast "::" does not start a reference.
func PutVariables(line string, forms []string, set map[string]string) string {
	for _, form := range forms {
		mark, after, _ := strings.Cut(form, "?")
		from := 0
		for from < len(line) && len(line) <= scan.MaxDecoded {
			i := strings.Index(line[from:], mark)
			if i < 0 {
				break
			}
			i += from
			from = i + len(mark)
			j := from
			for j < len(line) && IsWordByte(line[j]) {
				j++
			}
			if value, ok := set[line[from:j]]; ok && !(mark == ":" && isCast(line, i)) && strings.HasPrefix(line[j:], after) {
				line = line[:i] + value + line[j+len(after):]
				from = i + len(value)
			}
		}
	}
	return line
}

// isCast reports whether the ":" at i is the second of "::", or follows a word.
func isCast(line string, i int) bool {
	return i > 0 && (line[i-1] == ':' || IsWordByte(line[i-1]))
}
