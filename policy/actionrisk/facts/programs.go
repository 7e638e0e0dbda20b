package facts

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Program is everything that the tables say about one program, merged from all rows that name it.
// Each list is in the order of the table.
type Program struct {
	Options *Tool      // how its arguments are parsed; nil if no table describes that
	Carries []*Wrapper // the commands and program texts that it runs
	Effects []*effect  // files that it deletes, writes, reads or sends with uncommon options
	Reads   []*Read    // files that it runs although its command line does not name them
	Proves  []*proof   // conditions under which it changes nothing
	Dry     []*proof   // conditions under which it only shows what it would do
	Clients []*Client  // its effects on keys and money
	Rules   []*Way     // matchers of rules for it
	Judged  bool       // a rule, a row of clients or the engine's code judges it
}

// Known reports whether the engine knows an effect of the program, or what it runs.
func (p *Program) Known() bool { return p.Judged || p.Carries != nil }

// programRow is a row of programs.json: properties that several programs share. A program may be
// in several rows.
type programRow struct {
	Exe     []string   `json:"exe"` // names of programs, or "@group"
	Options []*Tool    `json:"options,omitempty"`
	Carries []*Wrapper `json:"carries,omitempty"`
	Effects []*effect  `json:"effects,omitempty"`
	Reads   []*Read    `json:"reads,omitempty"`
	Proves  []*proof   `json:"proves,omitempty"`
	Dry     []*proof   `json:"dry,omitempty"`
	Clients []*Client  `json:"clients,omitempty"`
}

// unknown is returned for programs that no table names.
var unknown Program

// Program returns the properties of a program. It is never nil.
func (c *Set) Program(name string) *Program {
	if p := c.Programs.Get(name); p != nil {
		return p
	}
	return &unknown
}

// entry returns the program that has this name, and adds it to the map if it is missing.
func entry(programs map[string]*Program, name string) *Program {
	p := programs[name]
	if p == nil {
		p = &Program{}
		programs[name] = p
	}
	return p
}

// readPrograms reads programs.json and merges it with the rules about each program.
func (c *Set) readPrograms(read rules.TableReader) error {
	programs := c.Programs.asMap()
	for _, n := range append([]string{"cast"}, c.Groups.Get("paying-clients")...) {
		entry(programs, n).Judged = true // the engine's code judges it without a row
	}
	var t struct {
		Programs []programRow `json:"programs"`
	}
	if err := read("programs", &t); err != nil {
		return err
	}
	for i := range t.Programs {
		names, err := c.Names(t.Programs[i].Exe)
		if err != nil {
			return fmt.Errorf("programs.json: %w", err)
		}
		for _, n := range names {
			entry(programs, n).add(&t.Programs[i])
		}
	}
	for _, p := range programs {
		p.complete()
	}
	c.Programs = dictOf(programs)
	return nil
}

// add adds the properties of a row. If no other row names the program, the program shares the
// slices of this row.
func (p *Program) add(r *programRow) {
	for _, t := range r.Options {
		p.reads(t)
	}
	p.Carries = joined(p.Carries, r.Carries)
	p.Effects = joined(p.Effects, r.Effects)
	p.Reads = joined(p.Reads, r.Reads)
	p.Proves = joined(p.Proves, r.Proves)
	p.Dry = joined(p.Dry, r.Dry)
	p.Clients = joined(p.Clients, r.Clients)
	p.Judged = p.Judged || len(r.Clients) > 0
}

func joined[T any](have, more []T) []T {
	if len(have) == 0 {
		return more
	}
	return append(slices.Clip(have), more...)
}

// reads adds the description of the arguments of a program or of its subcommands.
func (p *Program) reads(t *Tool) {
	if p.Options == nil {
		p.Options = &Tool{}
	}
	if len(t.Sub) == 0 {
		whole := *t
		whole.Subs, p.Options = p.Options.Subs, &whole
		return
	}
	subs := p.Options.Subs.asMap()
	for _, s := range t.Sub {
		subs[s] = t
	}
	p.Options.Subs = dictOf(subs)
}

// complete adds the options that take a value according to Carries and Effects.
func (p *Program) complete() {
	for _, w := range p.Carries {
		p.takesText(w)
	}
	for _, f := range p.Effects {
		p.takesValues(f)
	}
}
