package facts

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Program is all that the tables say of one program, whichever rows name it. Of each
// column the rows are in the order of the table.
type Program struct {
	Options *Tool      // how it reads its arguments; nil if nothing says so
	Carries []*Wrapper // other commands, or texts of a language
	Effects []*effect  // what it deletes, writes, reads or sends by an uncommon option
	Reads   []*Read    // files that it runs without being told so
	Proves  []*proof   // that it changes nothing
	Dry     []*proof   // that it only shows what it would do
	Clients []*Client  // what it does with keys and money
	Rules   []*Way     // what rules say of it
	Judged  bool       // a rule is about it, a client's row or the engine
}

// Known: something is said of what the program does, or what it runs.
func (p *Program) Known() bool { return p.Judged || p.Carries != nil }

// programRow is a line of programs.json: what a few programs that are called alike have
// in common. A program may be in several.
type programRow struct {
	Exe     []string   `json:"exe"` // names, or "@group"
	Options []*Tool    `json:"options,omitempty"`
	Carries []*Wrapper `json:"carries,omitempty"`
	Effects []*effect  `json:"effects,omitempty"`
	Reads   []*Read    `json:"reads,omitempty"`
	Proves  []*proof   `json:"proves,omitempty"`
	Dry     []*proof   `json:"dry,omitempty"`
	Clients []*Client  `json:"clients,omitempty"`
}

// unknown is a program of which nothing is known.
var unknown Program

// Program is what is known of a program; of most names in the world nothing is.
func (c *Set) Program(name string) *Program {
	if p := c.Programs.Get(name); p != nil {
		return p
	}
	return &unknown
}

// entry is the place for what is known of a program.
func entry(programs map[string]*Program, name string) *Program {
	p := programs[name]
	if p == nil {
		p = &Program{}
		programs[name] = p
	}
	return p
}

// readPrograms reads programs.json, and puts together what it and the rules say of each
// program.
func (c *Set) readPrograms(read rules.TableReader) error {
	programs := c.Programs.asMap()
	for _, n := range append([]string{"cast"}, c.Groups.Get("paying-clients")...) {
		entry(programs, n).Judged = true // the engine says something about it that no row lists
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
			return fmt.Errorf("programs: %w", err)
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

// add takes the row's columns over. They are shared as long as one row is all of it.
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

// reads takes over how arguments are read, of the whole program or of subcommands.
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

// complete adds the options that columns tell of which take the next word.
func (p *Program) complete() {
	for _, w := range p.Carries {
		p.takesText(w)
	}
	for _, f := range p.Effects {
		p.takesValues(f)
	}
}
