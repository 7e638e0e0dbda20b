package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Calls is calls.json: what functions do to stores and contracts, by what they are
// called in whatever language calls them. Effects have the names that the rules about
// stores give them.
type Calls struct {
	Drivers    Dict[Driver] // methods of drivers and object mappers
	Mappers    []Mapper
	Everything []string           // filters that pick all rows, without blanks
	Filters    []string           // parts of a chain that pick rows
	Contracts  Dict[string]       // functions that mean money or control, by the rule of any call; "" where the arguments decide
	Mongo      Dict[string]       // methods of MongoDB's shell
	Redis      Dict[Dict[string]] // commands, by their subcommand; "" stands for the rest
	Statements Dict[bool]         // functions that run the SQL in their first argument
}

// Shows is the effect of a call that changes nothing.
const Shows = "shows"

// Driver is the effect of a method on everything, and, if it takes a filter, on what the
// filter picks.
type Driver struct{ Whole, Scoped string }

// Mapper is the effect of a text that calls an object mapper: on a whole table, and on a
// part of it if a filter is before it in the chain.
type Mapper struct {
	Text   string `json:"text"`
	Whole  string `json:"whole"`
	Scoped string `json:"scoped,omitempty"` // the same if none
	Needs  string `json:"needs,omitempty"`  // a word that the text must hold as well
}

// callRow is a line of calls.json.
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

// Filtered: a filter that picks some rows is in a chain of calls.
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

// IsContractVerb tells whether a function's calls mean money or control. A text is read as
// a call only if it names one of them.
func (c *Calls) IsContractVerb(name string) bool {
	_, known := c.Contracts.Find(name)
	return known
}
