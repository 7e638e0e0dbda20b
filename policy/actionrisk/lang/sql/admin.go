package sql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// create handles CREATE: mostly additive, but for what it replaces, the rights
// it gives and the code it lets the server run.
func (p *parser) create(i, end int) {
	kind, target := objectOf(p, i+1, end), p.objectName(i+1, end)
	replaces := p.is(i+1, "or") && p.is(i+2, "replace")
	if p.has(i+1, min(i+5, end), "temporary", "temp") || strings.HasPrefix(target, "#") {
		p.temporary = append(p.temporary, strings.ToLower(target))
	}
	switch kind {
	case "database", "schema":
		if replaces {
			p.add("drop."+kind, target, i, end)
			return
		}
		p.add("ddl.additive", target, i, end)
	case "table":
		if replaces && p.selectsNothing(p.firstOf(i, end, "select"), end) {
			p.add("truncate", target, i, end)
			return
		}
		if replaces {
			p.add("replace", target, i, end)
			return
		}
		p.add("ddl.additive", target, i, end)
	case "index":
		p.add(lockUnless(p.has(i, end, "concurrently") || p.isTemporary(target), "ddl.additive"), target, i, end)
	case "role":
		p.account(i, end, target)
	case "routine", "trigger", "rule", "event":
		p.createRoutine(kind, i, end, target)
	case "extension":
		if strings.HasPrefix(target, "pl") && strings.HasSuffix(target, "u") || target == "plsh" {
			p.add("server.program", target, i, end)
			return
		}
		p.add("ddl.additive", target, i, end)
	case "assembly":
		p.add("server.program", target, i, end)
	default:
		p.add("ddl.additive", target, i, end)
	}
}

func lockUnless(online bool, otherwise string) string {
	if online {
		return otherwise
	}
	return "ddl.lock"
}

// untrustedLanguages let a routine do what the server's own account can do.
var untrustedLanguages = []string{"c", "plpythonu", "plpython2u", "plpython3u", "plperlu", "plsh", "pltclu", "java", "plrubyu", "plluau"}

// createRoutine reads the body: it runs later, unless this text also calls it.
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
		return // a scheduled statement does run
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
	found := false
	for j := i + 2; j < end; j++ {
		switch {
		case p.is(j, "set") && p.setting(p.raw(j+1), p.settingValue(j+2, end), i, end):
			found = true
		case p.is(j, "superuser"), p.raw(j) == "sysadmin" && p.is(i+1, "server"), p.raw(j) == "sysdba":
			p.add("privilege.superuser", target, i, end)
			found = true
		case p.is(j, "bypassrls"):
			p.add("privilege.rls-off", target, i, end)
			found = true
		case p.is(i, "alter") && (p.is(j, "password") && !p.is(j+1, "null") && !p.is(j+1, "expire") || p.is(j, "identified")):
			p.add("privilege.password", target, i, end)
			found = true
		case p.is(i, "alter") && p.is(j, "rename"):
			p.add("ddl.rename", target, i, end)
			found = true
		case p.is(i, "alter") && p.raw(i+1) == "role" && p.raw(i+2) == "db_owner" && p.is(j, "member"):
			p.add("privilege.grant-all", target, i, end)
			found = true
		}
	}
	if !found {
		p.add("privilege.grant", target, i, end)
	}
}

// superRoles own the server, or may do what its account can do.
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
	before := to
	if on > 0 {
		before = min(on, to)
	}
	found := false
	for j := i + 1; j < before; j++ {
		if on < 0 && slices.Contains(superRoles, strings.Trim(p.raw(j), `"`)+"") || p.raw(j) == "super" || p.raw(j) == "control" && p.is(j+1, "server") {
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
	for j := to + 1; j < end; j++ {
		if p.is(j, "public") && (p.is(j-1, "to") || p.op(j-1, ",") || p.is(j-1, "group")) {
			p.add("privilege.grant-public", "public", i, end)
			found = true
		}
	}
	if !found {
		p.add("privilege.grant", target, i, end)
	}
}

// alter dispatches on the kind of object.
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
		if p.is(i+2, "kill") || p.is(i+2, "disconnect") {
			p.add("server.kill-session", "", i, end)
		} else if !p.setting(p.raw(i+3), p.settingValue(i+4, end), i, end) {
			p.add("server.config", p.raw(i+3), i, end)
		}
	case "database", "account", "server":
		p.alterDatabase(i, end, target)
	case "session":
	case "type":
		switch {
		case p.has(i, end, "attribute") && p.has(i, end, "drop"):
			p.add("drop.column", target, i, end)
		case p.has(i, end, "rename"):
			p.add("ddl.rename", target, i, end)
		default:
			p.add("ddl.additive", target, i, end)
		}
	default:
		switch {
		case p.has(i, end, "rename"):
			p.add("ddl.rename", target, i, end)
		case p.has(i, end, "owner", "authorization"):
			p.add("privilege.grant", target, i, end)
		default:
			p.add("ddl.rewrite", target, i, end)
		}
	}
}

func (p *parser) alterDatabase(i, end int, target string) {
	if at := p.firstOf(i, end, "set"); p.setting(p.raw(at+1), p.settingValue(at+2, end), i, end) {
		return
	}
	switch {
	case p.raw(end-1) == "on" && p.raw(end-2) == "trustworthy":
		p.add("privilege.superuser", target, i, end) // its owner becomes whoever owns the server
	case p.raw(end-1) == "offline", p.has(i, end, "offline"):
		p.add("server.shutdown", target, i, end)
	case p.has(i, end, "immediate") || strings.Contains(strings.ToLower(p.text[p.toks[i].Start:p.toks[end-1].End]), "single_user"):
		p.add("server.kill-session", target, i, end)
	case p.has(i, end, "rename") || p.is(i+3, "modify") && p.is(i+4, "name"):
		p.add("ddl.rename", target, i, end)
	case p.has(i, end, "owner", "authorization"):
		p.add("privilege.grant", target, i, end)
	default:
		p.add("server.config", target, i, end)
	}
}

// alterTable reads the comma-separated actions.
func (p *parser) alterTable(i, end int, target string) {
	depth := p.toks[i].depth
	at := i + 1
	for at < end && !p.is(at, "table") {
		at++
	}
	for at++; p.isAny(at, "if", "exists", "only", "not"); at++ {
	}
	_, at = p.name(at, end)
	if p.op(at, "*") {
		at++
	}
	if p.is(at, "on") && p.is(at+1, "cluster") { // ClickHouse
		_, at = p.name(at+2, end)
	}
	if at >= end {
		p.add("ddl.rewrite", target, i, end)
		return
	}
	if p.is(at, "partition") && p.isAny(at+2, "drop", "truncate") {
		at += 2
	}
	for from := at; from < end; {
		to := from
		for to < end && !(p.toks[to].depth == depth && p.op(to, ",")) {
			to++
		}
		p.alterAction(i, from, to, target)
		from = to + 1
	}
}

// alterEffects are actions of ALTER TABLE whose effect does not depend on what follows.
var alterEffects = map[string]string{"clear": "drop.column", "truncate": "truncate", "discard": "drop.table",
	"rename": "ddl.rename", "swap": "ddl.rename", "exchange": "ddl.rename", "owner": "privilege.grant",
	"enable": "ddl.additive", "validate": "ddl.additive", "comment": "ddl.additive", "cluster": "ddl.additive",
	"attach": "ddl.additive", "cache": "ddl.additive", "inherit": "ddl.additive", "recover": "ddl.additive"}

// alterAction classifies one action [lo,hi) of ALTER TABLE.
func (p *parser) alterAction(i, lo, hi int, target string) {
	word := p.toks[lo].word
	effect := alterEffects[word]
	switch word {
	case "add":
		effect = p.alterAdd(lo, hi)
	case "drop":
		p.alterDrop(i, lo, hi, target)
		return
	case "set":
		effect = p.alterSet(lo)
	case "delete", "update":
		effect = word + "." + p.whereShape(lo, hi, target)
	case "disable", "no":
		if p.is(lo+1, "row") || p.is(lo+1, "force") && p.is(lo+2, "row") {
			effect = "privilege.rls-off"
		}
	case "alter", "modify", "change":
		p.alterColumn(i, lo, hi, target)
		return
	default:
		if effect == "" && p.raw(lo) == "engine" && (p.raw(lo+1) == "blackhole" || p.raw(lo+2) == "blackhole") {
			effect = "truncate"
		}
	}
	p.add(cmp.Or(effect, "ddl.rewrite"), target, i, hi)
}

// alterAdd: a constraint that every row is held to, or a column that must have a value
// and has none, locks the table while it is looked through.
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

func (p *parser) alterDrop(i, lo, hi int, target string) {
	effect := "drop.column"
	switch {
	case p.isAny(lo+1, "constraint", "index", "key", "primary", "foreign", "check", "default", "trigger", "policy", "projection", "statistics", "unique") || p.raw(lo+1) == "feature":
		effect = "drop.other"
	case p.isAny(lo+1, "partition", "partitions", "subpartition") || p.raw(lo+1) == "part" || p.raw(lo+1) == "detached":
		effect = "drop.table"
	}
	p.add(effect, target, i, hi)
}

func (p *parser) alterColumn(i, lo, hi int, target string) {
	switch {
	case p.is(lo, "alter") && p.has(lo, hi, "type"), !p.is(lo, "alter"):
		p.add("ddl.rewrite", target, i, hi)
	case p.has(lo, hi, "null") && p.has(lo, hi, "set"):
		p.add("ddl.lock", target, i, hi)
	case p.has(lo, hi, "set", "drop", "add", "restart"):
		p.add("ddl.additive", target, i, hi)
	default:
		p.add("ddl.rewrite", target, i, hi) // ALTER COLUMN c new-type
	}
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

// copies handles COPY … FROM and TO a file, the client or another server.
func (p *parser) copies(target string, i, end int) {
	at := p.find(i, end, p.toks[i].depth, "from", "to")
	if at < 0 || p.is(i+1, "into") {
		if p.stringAt(i+2) != "" && p.has(i, end, "credentials") { // into a bucket of another account
			p.add(act.SendsAway, p.stringAt(i+2), i, end)
		}
		p.add("insert", target, i, end)
		return
	}
	p.out.Dumps = p.out.Dumps || p.is(at, "to") && p.is(at+1, "stdout")
	p.functions(i+1, at)
	file := p.stringAt(at + 1)
	here := file != "" && !strings.Contains(file, "://") && !p.op(at+1, "@")
	switch {
	case p.is(at, "to"):
		if here {
			p.serverFile("server.file-write", file, i, end)
		}
	case !here:
		p.add("insert", target, i, end)
	case p.of.Embedded:
		p.add("insert", file, i, end)
	default:
		p.add("server.file-read", file, i, end)
	}
}

// loads handles LOAD DATA, XML, CSV and the library of a server.
func (p *parser) loads(i, end int) {
	if p.raw(i+1) == "csv" {
		p.loadCSV(i, end)
		return
	}
	file := p.stringAt(p.firstOf(i, end, "infile") + 1)
	switch {
	case p.is(i+1, "data"):
		secret := file != "" && paths.KindOfFile(file)&(paths.IsCredential|paths.IsAccounts) != 0 // of whichever machine
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

// loadCSV: Neo4j reads a file of the server, or of another one.
func (p *parser) loadCSV(i, end int) {
	url := p.stringAt(p.firstOf(i, end, "from") + 1)
	if file, ok := strings.CutPrefix(url, "file:"); ok && paths.KindOfFile("/"+strings.TrimLeft(file, "/"))&(paths.IsCredential|paths.IsAccounts) != 0 {
		p.add("server.file-read", file, i, end)
		return
	}
	p.add("insert", "", i, end)
}

// plainVerbs are verbs whose effect does not depend on what follows.
var plainVerbs = map[string]string{
	"rename": "ddl.rename", "exchange": "ddl.rename", "comment": "ddl.additive", "analyze": "ddl.additive", "analyse": "ddl.additive", "undrop": "ddl.additive", "backup": "ddl.additive",
	"lock": "ddl.lock", "kill": "server.kill-session", "shutdown": "server.shutdown", "restart": "server.shutdown", "stop": "server.config", "change": "server.config", "reconfigure": "server.config",
}

// administer handles the remaining verbs.
func (p *parser) administer(verb string, i, end int) {
	add := func(effect string) { p.add(effect, "", i, end) }
	if effect := plainVerbs[verb]; effect != "" {
		add(effect)
		return
	}
	switch verb {
	case "attach", "detach", "restore", "runscript", "flashback", "install":
		p.library(verb, i, end)
	case "remove":
		p.drop(i, end)
	case "vacuum", "reindex", "refresh", "cluster", "optimize", "rebuild":
		p.maintain(verb, i, end)
	case "flush":
		if p.has(i, end, "lock") {
			add("ddl.lock")
		} else if !p.isAny(i+1, "privileges", "status") {
			add("server.config")
		}
	case "purge":
		switch {
		case p.isAny(i+1, "binary", "master"):
			add("truncate")
		default:
			add("drop.table")
		}
	case "reset":
		switch {
		case p.isAny(i+1, "master", "binary"):
			add("truncate")
		case p.isAny(i+1, "slave", "replica", "persist"):
			add("server.config")
		}
	case "dbcc":
		if strings.Contains(strings.ToLower(p.text[p.toks[i].Start:p.toks[end-1].End]), "allow_data_loss") {
			add("truncate")
		}
	case "pragma":
		p.pragma(i, end)
	case "system":
		p.systemVerb(i, end)
	}
}

// library handles verbs that bring databases, states and code in and take them away.
func (p *parser) library(verb string, i, end int) {
	from := p.stringAt(p.firstOf(i, end, "from") + 1)
	effect := "ddl.additive"
	switch verb {
	case "attach":
		if runsAsPage(p.stringAt(p.firstOf(i, end, "database")+1) + p.stringAt(i+1)) {
			effect = "server.file-write"
		}
	case "detach":
		if effect = "ddl.rewrite"; p.has(i, end, "permanently") {
			effect = "drop.other"
		}
	case "restore":
		if effect = "replace"; p.has(i, end, "replace") {
			effect = "drop.database"
		}
	case "flashback":
		if effect = "truncate"; p.has(i, end, "before") { // TO BEFORE DROP brings it back
			effect = "ddl.rename"
		}
	case "runscript":
		if !strings.Contains(from, "://") {
			p.out.Includes = append(p.out.Includes, from)
			return
		}
		effect = "dynamic"
	case "install":
		if p.isAny(i+1, "plugin") || p.raw(i+1) == "component" || strings.Contains(from, "://") || strings.HasPrefix(p.stringAt(i+1), "/") {
			effect = "server.program"
		}
	}
	p.add(effect, "", i, end)
}

// runsAsPage: a file that a web server runs.
func runsAsPage(path string) bool {
	switch strings.ToLower(path[strings.LastIndexByte(path, '.')+1:]) {
	case "php", "phtml", "php5", "jsp", "jspx", "asp", "aspx", "cgi", "cfm":
		return true
	}
	return false
}

func (p *parser) maintain(verb string, i, end int) {
	online := p.has(i, end, "concurrently")
	switch {
	case verb == "vacuum" && p.raw(end-1) == "hours" && p.raw(end-2) == "0", verb == "vacuum" && p.raw(end-2) == "0" && p.raw(end-3) == "retain":
		p.add("truncate", "", i, end) // a table's history is what recovery needs
	case verb == "vacuum" && p.has(i, end, "full"), verb == "cluster", verb == "optimize":
		p.add("ddl.rewrite", "", i, end)
	case verb == "vacuum" || online || verb == "refresh" && !p.is(i+1, "materialized"):
		p.add("ddl.additive", "", i, end)
	default:
		p.add("ddl.lock", "", i, end)
	}
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

// systemVerb tells ClickHouse's SYSTEM from the mysql client's shell escape.
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
