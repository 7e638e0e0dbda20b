// Package events has the form in which the ledger stores events: one struct for each type of
// event. The API shows other structs.
//
// A stored struct changes only by optional members that an old event lacks; a member
// never moves, is never renamed and never changes its meaning. If the golden-bytes
// test of a type fails, the change is wrong: make a new schema version and a pure
// function that reads the old one.
//
// A member tagged personal:"true" is never stored in the clear: the ledger's vault
// (package ledger/vault) puts a commitment in its place and seals the value, so that
// it can be erased without touching the chain.
//
// Each file declares the types of one subject: their names, a row for each in the table
// of kinds, and their structs. A new type needs such a row; tests report what the row lacks.
package events

import (
	"reflect"
	"slices"
	"strings"
)

// kind is everything that other code needs to know about one type of event.
type kind struct {
	name   string       // "noun.verb", in the past tense
	stored reflect.Type // its present struct

	// shown names the read models that follow the type. It is nowhere for types that no read
	// model follows, since only commands read them, in their streams.
	shown []string

	// golden are payloads of the type before its personal members are sealed. Together they
	// have every member of the struct. A change of any byte is a new schema version.
	golden []string

	// newest is the schema version that this program writes; 0 is 1. Earlier ones are read, too.
	newest int
	// legacy says that all events of the type have schema version 0: the specification's
	// status records without an action binding.
	legacy bool
	// inRecord are pointers to personal members inside of members that are kept as JSON,
	// such as the signed record. Members of the struct itself are tagged personal:"true".
	inRecord []string
	// inSQL says that the database reads the payload (function erase_subject), so that a row
	// holds the text itself.
	inSQL bool
	// archived says that payloads of the type may leave the database when they are old. These
	// types make up nearly all of its size, and are read again only if a caller asks for that
	// very record. Decisions and credentials depend only on events of other types.
	archived bool
	// series says how events of the type are numbered. The zero value means that they are not.
	series numbered

	// sealed says that personal members may be stored in the payload as commitments, together
	// with the sealed box that opens them. Then readers without the vault read only the other
	// members. It follows from the members above.
	sealed bool
}

// kinds is the table of all types, and the one place from which stored bytes become structs.
var kinds = byName(slices.Concat(keys, calls, organizations, assurance, purchases, agents, payments, webhooks, audit, guard))

// nowhere marks types that no read model follows.
var nowhere = []string{}

func in(readModels ...string) []string { return readModels }

func byName(list []kind) map[string]kind {
	table := map[string]kind{}
	for _, k := range list {
		if _, twice := table[k.name]; twice {
			panic("events: " + k.name + " is declared twice")
		}
		k.sealed = len(k.inRecord) > 0 || len(k.personal()) > 0
		table[k.name] = k
	}
	return table
}

// Types lists the names of all types in alphabetical order.
var Types = namesOf(func(kind) bool { return true })

// Archived lists the types whose payloads may leave the database when they are old.
var Archived = namesOf(func(k kind) bool { return k.archived })

// ShownIn lists the types that a read model follows.
func ShownIn(readModel string) []string {
	return namesOf(func(k kind) bool { return slices.Contains(k.shown, readModel) })
}

// ReadModels lists the read models that the table names.
func ReadModels() (names []string) {
	for _, k := range kinds {
		names = append(names, k.shown...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namesOf(which func(kind) bool) (names []string) {
	for name, k := range kinds {
		if which(k) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// personal lists the JSON names of the members that are tagged personal:"true".
func (k kind) personal() (names []string) {
	for field := range k.stored.Fields() {
		if field.Tag.Get("personal") == "true" {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// versions returns the oldest and the newest schema version of the events of a type.
func (k kind) versions() (oldest, newest int) {
	if k.legacy {
		return 0, 0
	}
	return 1, max(1, k.newest)
}

// ReadInSQL says whether a row must hold the payload of a type as it is.
func ReadInSQL(eventType string) bool { return kinds[eventType].inSQL }

// Sealed says whether events of a type have personal members, which are stored sealed.
func Sealed(eventType string) bool { return kinds[eventType].sealed }

// PersonalInRecord lists pointers to the personal members inside of a type's signed record
// and other members that are kept as JSON, which are stored sealed.
func PersonalInRecord(eventType string) []string { return kinds[eventType].inRecord }

// Newest returns the schema version in which this program writes events of a type.
func Newest(eventType string) int {
	_, newest := kinds[eventType].versions()
	return newest
}
