package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Calls is calls.json: the effects of functions on stores and contracts, by the names of the
// functions in any language. Effects on stores have the names that the rules match.
type Calls struct {
	Drivers    Dict[Driver] // methods of database drivers and object mappers
	Mappers    []Mapper
	Everything []string           // filters that select all rows, without blanks
	Filters    []string           // parts of a chain of calls that select rows
	Contracts  Dict[string]       // contract functions that move money or change control, with their rule; "" if it depends on the arguments
	Mongo      Dict[string]       // methods of MongoDB's shell, with their effect
	Redis      Dict[Dict[string]] // effects of commands by subcommand; "" is any other subcommand
	Statements Dict[bool]         // functions that run the SQL in their first argument
}

// Shows is the effect of a call that changes nothing.
const Shows = "shows"

// Driver has the effects of a method: Whole on all rows, Scoped if it has a filter.
type Driver struct{ Whole, Scoped string }

// Mapper has the effects of a call of an object mapper: Whole on a table, Scoped if a filter
// precedes the call in its chain.
type Mapper struct {
	Text   string `json:"text"`
	Whole  string `json:"whole"`
	Scoped string `json:"scoped,omitempty"` // if empty, Whole is used
	Needs  string `json:"needs,omitempty"`  // a word that the text must also contain
}

// callRow is a row of calls.json.
type callRow struct {
	Names  []string `json:"names"`
	Whole  string   `json:"whole,omitempty"`
	Scoped string   `json:"scoped,omitempty"`
	Rule   string   `json:"rule,omitempty"`
	Sub    []string `json:"sub,omitempty"`
	Effect string   `json:"effect,omitempty"`
}

func (c *Set) readCalls(read rules.TableReader) error {
	var t struct {
		Drivers    []callRow `json:"drivers"`
		Mappers    []Mapper  `json:"mappers"`
		Filters    []string  `json:"filters"`
		Everything []string  `json:"everything"`
		Contracts  []callRow `json:"contracts"`
		Mongo      []callRow `json:"mongo"`
		Redis      []callRow `json:"redis"`
		Statements []string  `json:"statements"`
	}
	if err := read("calls", &t); err != nil {
		return err
	}
	drivers, contracts, mongo, redis := map[string]Driver{}, map[string]string{}, map[string]string{}, map[string]map[string]string{}
	for _, r := range t.Drivers {
		for _, n := range r.Names {
			drivers[n] = Driver{r.Whole, r.Scoped}
		}
	}
	for _, r := range t.Contracts {
		for _, n := range r.Names {
			contracts[n] = r.Rule
		}
	}
	for _, r := range t.Mongo {
		for _, n := range r.Names {
			mongo[n] = r.Effect
		}
	}
	for _, r := range t.Redis {
		for _, n := range r.Names {
			if redis[n] == nil {
				redis[n] = map[string]string{}
			}
			for _, s := range append(r.Sub, "")[:max(1, len(r.Sub))] {
				redis[n][s] = r.Effect
			}
		}
	}
	c.Calls = Calls{Drivers: dictOf(drivers), Mappers: t.Mappers, Filters: t.Filters, Everything: t.Everything, Contracts: dictOf(contracts),
		Mongo: dictOf(mongo), Redis: dictOfDicts(redis), Statements: setOf(t.Statements)}
	return nil
}

// Filtered reports whether a chain of calls has a filter that does not select all rows.
func (c *Calls) Filtered(chain string) bool {
	if !scan.HasAny(chain, c.Filters...) {
		return false
	}
	rest := strings.Join(strings.Fields(chain), "")
	for _, f := range c.Everything {
		rest = strings.ReplaceAll(rest, f, "")
	}
	return scan.HasAny(rest, c.Filters...)
}

// IsContractVerb reports whether a contract function moves money or changes control. A text is
// parsed as a call only if it contains the name of such a function.
func (c *Calls) IsContractVerb(name string) bool {
	_, known := c.Contracts.Find(name)
	return known
}
