// Package store is the front-end for databases. It reads the text that a database client runs,
// start files and migrations, calls of object-relational mappers, and text that is written to the
// connection of a server.
package store

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// ReadSQL judges src as the text of a database client, or as a bare statement in any SQL dialect
// if client is nil. If a SELECT prints a constant text that is SQL, ReadSQL returns that text,
// because it may be piped into a client.
func ReadSQL(sh *interp.Process, src *act.Source, _ string, client *act.Invocation) act.Flow {
	e := sh.Env
	e.Ran = true
	text := src.Text
	if len(text) > scan.MaxText {
		text = text[:scan.MaxText]
		e.TooDeep = true
	}
	text = strings.ReplaceAll(text, string(scan.Hole), "_")
	name := ""
	if client != nil {
		name = client.Exe
	}
	words := stores.ClientWords(client, src.Text)
	if stores.Clients[name] == 0 { // there is no client, or it works with several databases
		if stores.LooksMongo(text) {
			e.Mongo(src, text, words)
			return act.Flow{}
		}
		if stores.LooksRedis(text) {
			e.Redis(src, text, words)
			return act.Flow{}
		}
	}
	reads := stores.Clients[name]
	if reads == 0 {
		reads = sql.AnyReading
	}
	if whole := ExpandClient(e, name, text, client); whole != text {
		carrier := *src
		carrier.Text, carrier.At = whole, -1
		src, text = &carrier, whole
	}
	result := sql.Classify(text, reads, sql.Client{Name: name, Apply: e.Apply, Transactional: e.In("transactional-ddl", name), Embedded: e.In("embedded-databases", name)})
	result.Root = client != nil && client.Root
	e.Statements(src, &result, words)
	includedSQL(e, src, result.Includes, client)
	switch {
	case result.Printed != "":
		return act.Flow{Known: true, Word: act.Word{Text: result.Printed, At: -1, Span: src.Span}}
	case result.Dumps:
		return act.Flow{Taint: act.FromDump}
	}
	return act.Flow{}
}

// includedSQL judges the files that the text tells a client to read, if the command itself wrote
// them.
func includedSQL(e *interp.Env, src *act.Source, names []string, client *act.Invocation) {
	cwd := e.Context.Cwd
	if client != nil {
		cwd = client.Cwd
	}
	for _, name := range names {
		f, ok := e.Files[e.Key(cwd, name)]
		if !ok || src.Depth >= scan.MaxDepth || !e.Budget.Spend(4) {
			continue
		}
		if f.Known {
			inner := src.Inside(f.Word, "include")
			e.Read("sql", &inner, client)
		} else if f.Taint&act.FromNetwork != 0 {
			e.See(act.UnknownStatement, src, 0, len(src.Text), name)
		}
	}
}
