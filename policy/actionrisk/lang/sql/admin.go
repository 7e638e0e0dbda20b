package sql

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// create handles CREATE. It is additive, except for objects that it replaces, rights that it
// grants and code that the server will run.
func (p *parser) create(i, end int) {
	kind, target := objectOf(p, i+1, end), p.objectName(i+1, end)
	if p.has(i+1, min(i+5, end), "temporary", "temp") {
		p.temporary = append(p.temporary, strings.ToLower(target))
	}
	effect := "ddl.additive"
	switch kind {
	case "database", "schema", "table":
		if p.is(i+1, "or") && p.is(i+2, "replace") {
			effect = p.replaced(kind, i, end)
		}
	case "index":
		if !p.has(i, end, "concurrently") && !p.isTemporary(target) {
			effect = "ddl.lock"
		}
	case "role":
		p.account(i, end, target)
		return
	case "routine", "trigger", "rule", "event":
		p.createRoutine(kind, i, end, target)
		return
	case "extension":
		if slices.Contains(untrustedLanguages, target) {
			effect = "server.program"
		}
	case "assembly":
		effect = "server.program"
	}
	p.add(effect, target, i, end)
}

// replaced returns the effect of CREATE OR REPLACE on the object that it replaces.
func (p *parser) replaced(kind string, i, end int) string {
	switch {
	case kind != "table":
		return "drop." + kind
	case p.selectsNothing(p.firstOf(i, end, "select"), end):
		return "truncate"
	}
	return "replace"
}

// untrustedLanguages lists languages in which a routine can do everything that the
// operating-system account of the server can do.
var untrustedLanguages = []string{"c", "plpythonu", "plpython2u", "plpython3u", "plperlu", "plsh", "pltclu", "java", "plrubyu", "plluau"}

// createRoutine judges the body of a routine, which runs only if it is called. callBodies handles
// a call in the same text.
func (p *parser) createRoutine(kind string, i, end int, target string) {
	for j := i; j < end; j++ {
		if p.is(j, "language") && slices.Contains(untrustedLanguages, strings.Trim(p.raw(j+1), `'"`)) ||
			p.is(j, "soname") || p.is(j, "external") && p.is(j+1, "name") {
			p.add("server.program", target, i, end)
			return
		}
	}
	p.add("ddl.additive", target, i, end)
	if kind == "event" {
		return // the server runs the statement of an event by itself
	}
	name := strings.ToLower(target[strings.LastIndexByte(target, '.')+1:])
	p.bodies = append(p.bodies, name)
	p.routine = name
	for j := i; j < end; j++ {
		if p.toks[j].kind == sqlString && p.isAny(j-1, "as", "do") {
			p.nested(stringText(p.text[p.toks[j].Start:p.toks[j].End]), "routine", i, end)
		}
	}
}

// account handles CREATE and ALTER of roles, users and logins.
func (p *parser) account(i, end int, target string) {
	before := len(p.out.Facts)
	for j := i + 2; j < end; j++ {
		if p.is(j, "set") && p.setting(p.raw(j+1), p.settingValue(j+2, end), i, end) {
			continue
		}
		if effect := p.accountOption(i, j); effect != "" {
			p.add(effect, target, i, end)
		}
	}
	if len(p.out.Facts) == before {
		p.add("privilege.grant", target, i, end)
	}
}

// accountOption returns the effect of the option at token j of the CREATE or ALTER at token i, or
// "".
func (p *parser) accountOption(i, j int) string {
	switch {
	case p.is(j, "superuser"), p.raw(j) == "sysadmin" && p.is(i+1, "server"), p.raw(j) == "sysdba":
		return "privilege.superuser"
	case p.is(j, "bypassrls"):
		return "privilege.rls-off"
	case !p.is(i, "alter"):
		return ""
	case p.is(j, "password") && !p.isAny(j+1, "null", "expire"), p.is(j, "identified"):
		return "privilege.password"
	case p.is(j, "rename"):
		return "ddl.rename"
	case p.is(j, "member") && p.raw(i+2) == "db_owner":
		return "privilege.grant-all"
	}
	return ""
}

// superRoles lists roles that control the server, or can do what its operating-system account can
// do.
var superRoles = []string{"rds_superuser", "cloudsqlsuperuser", "azure_pg_admin", "pg_execute_server_program", "pg_write_server_files",
	"pg_read_server_files", "dba", "sysdba", "sysoper", "accountadmin", "securityadmin", "sysadmin", "super", "postgres", "root", "admin_option", "file"}

func (p *parser) grant(verb string, i, end int) {
	if verb != "grant" {
		p.add("privilege.grant", "", i, end)
		return
	}
	to := p.find(i, end, p.toks[i].depth, "to")
	on := p.find(i, end, p.toks[i].depth, "on")
	if to < 0 {
		to = end
	}
	target, _ := p.name(to+1, end)
	before := len(p.out.Facts)
	p.rights(i, on, to, target, end)
	for j := to + 1; j < end; j++ {
		if p.is(j, "public") && (p.isAny(j-1, "to", "group") || p.op(j-1, ",")) {
			p.add("privilege.grant-public", "public", i, end)
		}
	}
	if len(p.out.Facts) == before {
		p.add("privilege.grant", target, i, end)
	}
}

// rights adds the effects of the rights or roles that the GRANT at token i gives to the target.
// The keywords ON and TO have the indexes on and to; on is negative if roles are granted.
func (p *parser) rights(i, on, to int, target string, end int) {
	list, found := to, false
	if on > 0 {
		list = min(on, to)
	}
	for j := i + 1; j < list; j++ {
		if p.ownsServer(j, on < 0) {
			p.add("privilege.superuser", target, i, end)
			found = true
		}
		if p.is(j, "all") && p.toks[j].depth == p.toks[i].depth {
			p.add("privilege.grant-all", target, i, end)
			found = true
		}
	}
	if found && on > 0 && p.op(on+1, "*") && p.op(on+3, "*") {
		p.add("privilege.superuser", target, i, end)
	}
}

// ownsServer reports whether the right or role at token i gives control of the server. role means
// that the statement grants roles.
func (p *parser) ownsServer(i int, role bool) bool {
	return p.raw(i) == "super" || p.raw(i) == "control" && p.is(i+1, "server") || role && slices.Contains(superRoles, strings.Trim(p.raw(i), `"`))
}

// alter handles ALTER by the kind of its object.
func (p *parser) alter(i, end int) {
	kind, target := objectOf(p, i+1, end), p.objectName(i+1, end)
	if g := p.find(i, end, p.toks[i].depth, "grant"); g > 0 && p.is(i+1, "default") {
		p.grant("grant", g, end)
		return
	}
	switch kind {
	case "table":
		p.alterTable(i, end, target)
	case "role":
		p.account(i, end, target)
	case "system", "instance":
		if p.isAny(i+2, "kill", "disconnect") {
			p.add("server.kill-session", "", i, end)
		} else if !p.setting(p.raw(i+3), p.settingValue(i+4, end), i, end) {
			p.add("server.config", p.raw(i+3), i, end)
		}
	case "database", "account", "server":
		p.alterDatabase(i, end, target)
	case "session":
	default:
		p.add(p.alterOther(kind, i, end), target, i, end)
	}
}

// alterOther returns the effect of ALTER on a type, a view, a function or another kind of object.
func (p *parser) alterOther(kind string, i, end int) string {
	switch {
	case kind == "type" && p.has(i, end, "attribute") && p.has(i, end, "drop"):
		return "drop.column"
	case p.has(i, end, "rename"):
		return "ddl.rename"
	case kind == "type":
		return "ddl.additive"
	case p.has(i, end, "owner", "authorization"):
		return "privilege.grant"
	}
	return "ddl.rewrite"
}

func (p *parser) alterDatabase(i, end int, target string) {
	if at := p.firstOf(i, end, "set"); p.setting(p.raw(at+1), p.settingValue(at+2, end), i, end) {
		return
	}
	effect := "server.config"
	switch {
	case p.raw(end-1) == "on" && p.raw(end-2) == "trustworthy":
		effect = "privilege.superuser" // the owner of the database can become sysadmin of the server
	case p.has(i, end, "offline"):
		effect = "server.shutdown"
	case p.has(i, end, "immediate") || p.says(i, end, "single_user"):
		effect = "server.kill-session"
	case p.has(i, end, "rename") || p.is(i+3, "modify") && p.is(i+4, "name"):
		effect = "ddl.rename"
	case p.has(i, end, "owner", "authorization"):
		effect = "privilege.grant"
	}
	p.add(effect, target, i, end)
}

// says reports whether the text of the statement at [i,end) contains the given letters, ignoring
// case.
func (p *parser) says(i, end int, letters string) bool {
	return strings.Contains(strings.ToLower(p.text[p.toks[i].Start:p.toks[end-1].End]), letters)
}

// alterTable handles the comma-separated actions of ALTER TABLE.
func (p *parser) alterTable(i, end int, target string) {
	at := p.firstOf(i+1, end, "table") + 1
	for p.isAny(at, "if", "exists", "only", "not") {
		at++
	}
	_, at = p.name(at, end)
	if p.op(at, "*") {
		at++
	}
	if p.is(at, "on") && p.is(at+1, "cluster") { // ClickHouse allows ON CLUSTER name
		_, at = p.name(at+2, end)
	}
	if at >= end {
		p.add("ddl.rewrite", target, i, end)
		return
	}
	if p.is(at, "partition") && p.isAny(at+2, "drop", "truncate") {
		at += 2
	}
	for _, action := range p.list(at, end) {
		p.add(p.alterAction(action[0], action[1], target), target, i, action[1])
	}
}

// alterEffects maps the actions of ALTER TABLE whose first word alone decides the effect to that
// effect.
var alterEffects = sync.OnceValue(func() map[string]string {
	return map[string]string{"clear": "drop.column", "truncate": "truncate", "discard": "drop.table",
		"rename": "ddl.rename", "swap": "ddl.rename", "exchange": "ddl.rename", "owner": "privilege.grant",
		"enable": "ddl.additive", "validate": "ddl.additive", "comment": "ddl.additive", "cluster": "ddl.additive",
		"attach": "ddl.additive", "cache": "ddl.additive", "inherit": "ddl.additive", "recover": "ddl.additive"}
})

// alterAction returns the effect of one action of ALTER TABLE at [lo,hi).
func (p *parser) alterAction(lo, hi int, target string) string {
	word := p.toks[lo].word
	switch word {
	case "add":
		return p.alterAdd(lo, hi)
	case "drop":
		return p.alterDrop(lo)
	case "set":
		return p.alterSet(lo)
	case "delete", "update":
		return word + "." + p.whereShape(lo, hi, target)
	case "disable", "no":
		if p.is(lo+1, "row") || p.is(lo+1, "force") && p.is(lo+2, "row") {
			return "privilege.rls-off"
		}
	case "alter", "modify", "change":
		return p.alterColumn(lo, hi)
	case "engine":
		if p.says(lo, hi, "blackhole") {
			return "truncate"
		}
	}
	return cmp.Or(alterEffects()[word], "ddl.rewrite")
}

// alterAdd returns the effect of ADD. A new constraint, or a NOT NULL column without a default,
// locks the table while the server checks every row.
func (p *parser) alterAdd(lo, hi int) string {
	switch {
	case p.isAny(lo+1, "constraint", "foreign", "check", "primary", "unique", "exclude") && !(p.is(hi-1, "valid") && p.is(hi-2, "not")):
		return "ddl.lock"
	case p.has(lo, hi, "null") && p.has(lo, hi, "not") && !p.has(lo, hi, "default", "generated", "partition"):
		return "ddl.lock"
	}
	return "ddl.additive"
}

func (p *parser) alterSet(lo int) string {
	switch {
	case p.is(lo+1, "unused"):
		return "drop.column"
	case p.is(lo+1, "schema"):
		return "ddl.rename"
	case p.isAny(lo+1, "tablespace", "logged", "unlogged", "access"):
		return "ddl.rewrite"
	}
	return "ddl.additive"
}

func (p *parser) alterDrop(lo int) string {
	next := p.raw(lo + 1)
	switch {
	case p.isAny(lo+1, "constraint", "index", "key", "primary", "foreign", "check", "default", "trigger", "policy", "projection", "statistics", "unique") || next == "feature":
		return "drop.other"
	case p.isAny(lo+1, "partition", "partitions", "subpartition") || next == "part" || next == "detached":
		return "drop.table"
	}
	return "drop.column"
}

func (p *parser) alterColumn(lo, hi int) string {
	switch {
	case !p.is(lo, "alter") || p.has(lo, hi, "type"):
		return "ddl.rewrite"
	case p.has(lo, hi, "null") && p.has(lo, hi, "set"):
		return "ddl.lock"
	case p.has(lo, hi, "set", "drop", "add", "restart"):
		return "ddl.additive"
	}
	return "ddl.rewrite" // for example ALTER COLUMN c new-type
}

// transfer handles statements that move data between the server and files.
func (p *parser) transfer(verb string, i, end int) {
	target, _ := p.name(i+1, end)
	if program := p.find(i, end, p.toks[i].depth, "program"); program > 0 && verb == "copy" && p.isAny(program-1, "from", "to") {
		command := p.stringAt(program + 1)
		p.add("server.program", command, i, end)
		if command != "" {
			p.out.Shell = append(p.out.Shell, carried{command, "copy-program", p.toks[program+1].Start, p.toks[program+1].End})
		}
		return
	}
	switch verb {
	case "copy":
		p.copies(target, i, end)
	case "load":
		p.loads(i, end)
	case "bulk":
		p.add("insert", target, i, end)
	case "import":
		p.add("ddl.additive", target, i, end)
	}
}

// sendsTo returns the address outside the database to which a statement writes rows: an object
// store or a server. It returns "" if there is no such address, or if it is this machine.
func (p *parser) sendsTo(verb string, i, end int) string {
	if !sends.Has(verb) {
		return ""
	}
	for j := i + 1; j < end; j++ {
		address := p.stringAt(j)
		scheme, place, there := strings.Cut(address, "://")
		if !there || !storeSchemes.Has(strings.ToLower(scheme)) {
			continue
		}
		switch {
		case scan.HasAnyPrefix(place, "localhost", "127.", "[::1]"),
			verb == "copy" && !p.isAny(j-1, "to", "into"),
			verb == "insert" && !p.has(i, j, "function", "directory"):
			return ""
		}
		return address
	}
	return ""
}

// sends lists the verbs of statements that can write rows to an address.
var sends = scan.SetOf("copy unload export backup insert")

// storeSchemes lists the URL schemes of the addresses to which databases write.
var storeSchemes = scan.SetOf("s3 s3a s3n gs gcs azure az abfs abfss wasb wasbs oci oss cos r2 hf ftp sftp http https")

// copies handles COPY from and to a file, the client or another server.
func (p *parser) copies(target string, i, end int) {
	at := p.find(i, end, p.toks[i].depth, "from", "to")
	if at < 0 || p.is(i+1, "into") {
		p.add("insert", target, i, end)
		return
	}
	p.out.Dumps = p.out.Dumps || p.is(at, "to") && p.is(at+1, "stdout")
	p.functions(i+1, at)
	file, to := p.stringAt(at+1), p.is(at, "to")
	if strings.Contains(file, "://") || p.op(at+1, "@") {
		file = ""
	}
	switch {
	case to && file != "":
		p.serverFile("server.file-write", file, i, end)
	case to:
	case file == "":
		p.add("insert", target, i, end)
	case p.of.Embedded:
		p.add("insert", file, i, end)
	default:
		p.add("server.file-read", file, i, end)
	}
}

// loads handles LOAD DATA, LOAD XML, LOAD CSV, and LOAD of a library.
func (p *parser) loads(i, end int) {
	if p.raw(i+1) == "csv" {
		p.loadCSV(i, end)
		return
	}
	file := p.stringAt(p.firstOf(i, end, "infile") + 1)
	switch {
	case p.is(i+1, "data"):
		secret := file != "" && paths.KindOfFile(file)&(paths.IsCredential|paths.IsAccounts) != 0 // the file may be on the client or on the server
		if !secret && p.has(i, end, "local", "inpath") {
			p.add("insert", "", i, end)
			return
		}
		p.add("server.file-read", file, i, end)
	case p.is(i+1, "xml"):
		p.add("insert", "", i, end)
	case p.toks[min(i+1, len(p.toks)-1)].kind == sqlString && i+2 >= end && strings.Contains(p.stringAt(i+1), "/"):
		p.add("server.program", p.stringAt(i+1), i, end)
	}
}

// loadCSV handles LOAD CSV of Neo4j, which reads a file of the server or a URL.
func (p *parser) loadCSV(i, end int) {
	url := p.stringAt(p.firstOf(i, end, "from") + 1)
	if file, ok := strings.CutPrefix(url, "file:"); ok && paths.KindOfFile("/"+strings.TrimLeft(file, "/"))&(paths.IsCredential|paths.IsAccounts) != 0 {
		p.add("server.file-read", file, i, end)
		return
	}
	p.add("insert", "", i, end)
}

// plainVerbs maps verbs that alone decide the effect of their statement to that effect.
var plainVerbs = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"rename": "ddl.rename", "exchange": "ddl.rename", "comment": "ddl.additive", "analyze": "ddl.additive", "analyse": "ddl.additive", "undrop": "ddl.additive", "backup": "ddl.additive",
		"lock": "ddl.lock", "kill": "server.kill-session", "shutdown": "server.shutdown", "restart": "server.shutdown", "stop": "server.config", "change": "server.config", "reconfigure": "server.config",
	}
})

// verbEffects maps a verb and the word after it to an effect. The entry "" is for every other
// word.
var verbEffects = sync.OnceValue(func() map[string]map[string]string {
	return map[string]map[string]string{
		"purge": {"binary": "truncate", "master": "truncate", "": "drop.table"},
		"reset": {"binary": "truncate", "master": "truncate", "slave": "server.config", "replica": "server.config", "persist": "server.config"},
		"flush": {"privileges": "none", "status": "none", "": "server.config"},
	}
})

// administer handles the statements that no other function handles.
func (p *parser) administer(verb string, i, end int) {
	effect := plainVerbs()[verb]
	switch verb {
	case "attach", "detach", "restore", "runscript", "flashback", "install":
		p.library(verb, i, end)
	case "vacuum", "reindex", "refresh", "cluster", "optimize", "rebuild":
		effect = p.maintain(verb, i, end)
	case "flush", "purge", "reset":
		effect = cmp.Or(verbEffects()[verb][p.raw(i+1)], verbEffects()[verb][""])
		if verb == "flush" && p.has(i, end, "lock") {
			effect = "ddl.lock"
		}
	case "dbcc":
		if p.says(i, end, "allow_data_loss") {
			effect = "truncate"
		}
	case "pragma":
		p.pragma(i, end)
	case "system":
		p.systemVerb(i, end)
	}
	if effect != "" && effect != "none" {
		p.add(effect, "", i, end)
	}
}

// library handles verbs that attach, restore or detach databases, install code, or run a script
// file.
func (p *parser) library(verb string, i, end int) {
	from := p.stringAt(p.firstOf(i, end, "from") + 1)
	remote := strings.Contains(from, "://")
	if verb == "runscript" && !remote {
		p.out.Includes = append(p.out.Includes, from)
		return
	}
	effect := libraryEffects()[verb]
	harms := false
	switch verb {
	case "attach":
		harms = runsAsPage(p.stringAt(p.firstOf(i, end, "database")+1) + p.stringAt(i+1))
	case "install":
		harms = remote || p.is(i+1, "plugin") || p.raw(i+1) == "component" || strings.HasPrefix(p.stringAt(i+1), "/")
	default:
		harms = p.has(i, end, effect.word)
	}
	if harms {
		p.add(effect.with, "", i, end)
	} else {
		p.add(effect.plain, "", i, end)
	}
}

// libraryEffects maps each verb of library to two effects: the usual one (plain), and that of a
// dangerous statement (with). A statement is dangerous if it contains the word; for attach and
// install, library has its own condition.
var libraryEffects = sync.OnceValue(func() map[string]struct{ plain, word, with string } {
	return map[string]struct{ plain, word, with string }{
		"attach":    {"ddl.additive", "", "server.file-write"},
		"install":   {"ddl.additive", "", "server.program"},
		"detach":    {"ddl.rewrite", "permanently", "drop.table"},
		"restore":   {"replace", "replace", "drop.database"},
		"flashback": {"truncate", "before", "ddl.rename"}, // TO BEFORE DROP restores a dropped table
		"runscript": {"dynamic", "", ""},
	}
})

// runsAsPage reports whether a web server would run a file with this extension.
func runsAsPage(path string) bool {
	switch strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]) {
	case "php", "phtml", "php5", "jsp", "jspx", "asp", "aspx", "cgi", "cfm":
		return true
	}
	return false
}

func (p *parser) maintain(verb string, i, end int) string {
	vacuum := verb == "vacuum"
	switch {
	case vacuum && (p.raw(end-1) == "hours" && p.raw(end-2) == "0" || p.raw(end-2) == "0" && p.raw(end-3) == "retain"):
		return "truncate" // without the history, the table's old versions cannot be recovered
	case vacuum && p.has(i, end, "full"), verb == "cluster", verb == "optimize":
		return "ddl.rewrite"
	case vacuum, p.has(i, end, "concurrently"), verb == "refresh" && !p.is(i+1, "materialized"):
		return "ddl.additive"
	}
	return "ddl.lock"
}

func (p *parser) pragma(i, end int) {
	assigns := false
	for j := i; j < end; j++ {
		assigns = assigns || p.op(j, "=")
	}
	if assigns {
		p.out.ReadOnly = false
		if p.raw(i+1) == "writable_schema" || p.raw(i+1) == "synchronous" {
			p.add("server.config", p.raw(i+1), i, end)
		}
	}
}

// systemVerb handles SYSTEM, which is a statement of ClickHouse or the shell escape of the mysql
// client.
func (p *parser) systemVerb(i, end int) {
	switch p.raw(i + 1) {
	case "shutdown", "kill":
		p.add("server.shutdown", "", i, end)
	case "drop":
		p.add("drop.other", "", i, end)
	case "stop", "start", "reload", "flush", "sync", "restart", "restore", "unfreeze", "wait":
		p.add("server.config", "", i, end)
	default:
		line := p.text[p.toks[i].End:]
		if n := strings.IndexAny(line, "\n\r"); n >= 0 {
			line = line[:n]
		}
		p.carry(line, "client-shell", i)
	}
}
