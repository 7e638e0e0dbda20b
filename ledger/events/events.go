// Package events defines the form in which the ledger stores events: one struct for each type of
// event. The API has other structs.
//
// A stored struct may change only by new optional members, which old events lack. A member is
// never moved or renamed and never changes its meaning. If the golden-bytes test of a type fails,
// the change is not allowed: add a new schema version and a pure function that reads the old one.
//
// A member tagged personal:"true" is always encrypted: the ledger's vault (package ledger/vault)
// replaces it by a commitment and encrypts the value, so that it can be erased without changing
// the chain.
//
// Each file declares the types of one subject: their names, a row for each in the table of kinds,
// and their structs. A new type needs such a row; tests report what a row lacks.
package events

import (
	"reflect"
	"slices"
	"strings"
)

// Committed begins each commitment that a payload contains instead of a personal value.
const Committed = `{"$committed":`

// Prefixes of the ids of API keys and of agent clients, which are the actors of their calls.
const (
	KeyPrefix   = "key_"
	AgentPrefix = "agt_"
)

// kind is the declaration of one type of event.
type kind struct {
	name   string       // "noun.verb", in the past tense
	stored reflect.Type // current struct of the type

	// shown names the read models that follow the type. It is nowhere if no read model does,
	// because only commands read the type, in its streams.
	shown []string

	// golden contains example payloads of the type before its personal members are encrypted.
	// Together they have every member of the struct. If a byte changes, the type needs a new
	// schema version.
	golden []string

	// newest is the schema version that this program writes; 0 means 1. It reads earlier versions,
	// too.
	newest int
	// legacy means that all events of the type have schema version 0: they are the specification's
	// status records without an action binding.
	legacy bool
	// inRecord lists pointers to personal members inside members that contain JSON, such as the
	// signed record. Personal members of the struct itself are tagged personal:"true".
	inRecord []string
	// inSQL means that a database function reads the payload (erase_subject), so it is stored
	// unpacked.
	inSQL bool
	// archived means that old payloads of the type may be moved out of the database. Payloads of
	// these types make up most of the database, and old ones are read again only if a caller
	// requests that record.
	// Decisions and credentials depend only on events of other types.
	archived bool
	// about is the member with the id of what an event in the access history is about, in the
	// payload or in its record. If it is empty, the event is about its organization.
	about string
	// series says how events of the type are numbered. With the zero value they are not.
	series numbered

	// sealed means that payloads may contain commitments and an encrypted box instead of personal
	// members. Then readers without the vault can read only the other members. It is derived from
	// the fields above.
	sealed bool
}

// kinds is the table of all types. Only the functions of this package decode stored bytes into
// structs.
var kinds = byName(slices.Concat(keys, calls, organizations, assurance, purchases, agents, payments, webhooks, audit, guard))

// nowhere is the value of kind.shown for types that no read model follows.
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

// Archived lists the types whose old payloads may be moved out of the database.
var Archived = namesOf(func(k kind) bool { return k.archived })

// ShownIn lists the types that a read model follows.
func ShownIn(readModel string) []string {
	return namesOf(func(k kind) bool { return slices.Contains(k.shown, readModel) })
}

// ReadModels lists all read models that follow a type.
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

// ReadInSQL reports whether payloads of a type must be stored unpacked, because SQL reads them.
func ReadInSQL(eventType string) bool { return kinds[eventType].inSQL }

// Sealed reports whether events of a type have personal members, which are stored encrypted.
func Sealed(eventType string) bool { return kinds[eventType].sealed }

// PersonalInRecord lists pointers to the encrypted personal members in a type's signed record and
// in other members that contain JSON.
func PersonalInRecord(eventType string) []string { return kinds[eventType].inRecord }

// Newest returns the schema version in which this program writes events of a type.
func Newest(eventType string) int {
	_, newest := kinds[eventType].versions()
	return newest
}
