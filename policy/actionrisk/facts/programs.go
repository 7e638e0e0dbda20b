package facts

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Program is all that the tables say of one program, whichever rows name it. Of each
// column the rows stand in the order of the table.
type Program struct {
	Options *Tool      // how it reads its arguments; nil if nothing says so
	Carries []*Wrapper // other commands, or texts of a language
	Effects []*effect  // what it deletes, writes, reads or sends by an option nobody thinks of
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
// in common. A program may stand in several.
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

// Program is what is known of a program; of most names in the world nothing is. Its rows
// are decoded when they are first asked for: a guard needs a few of them at each call.
func (c *Set) Program(name string) *Program {
	if p, ok := c.ready.Load(name); ok {
		return p.(*Program)
	}
	base, rows := c.programs[name], c.rowsOf[name]
	if base == nil && rows == nil {
		return &unknown
	}
	p := &Program{}
	if base != nil {
		*p = *base
	}
	for _, i := range rows {
		p.add(c.row(i))
	}
	p.complete()
	kept, _ := c.ready.LoadOrStore(name, p)
	return kept.(*Program)
}

// entry is the place for what rules and the engine say of a program.
func (c *Set) entry(name string) *Program {
	p := c.programs[name]
	if p == nil {
		p = &Program{}
		c.programs[name] = p
	}
	return p
}

// readPrograms notes which rows are about which program. Of this release's table the rows
// stay texts; that each of them can be read is tested. Those of an earlier one are read.
func (c *Set) readPrograms(read rules.TableReader) error {
	var t struct {
		Programs []programRow `json:"programs"`
	}
	rows, about, err := rules.Rows("programs", "programs", "exe")
	if !c.present {
		err = read("programs", &t)
		about = make([][]string, len(t.Programs))
		for i := range t.Programs {
			about[i] = t.Programs[i].Exe
		}
	}
	if err != nil {
		return fmt.Errorf("programs: %w", err)
	}
	c.rowsOf = make(map[string][]int32, 2*len(about))
	for i, exe := range about {
		names, err := c.Names(exe)
		if err != nil {
			return err
		}
		for _, n := range names {
			c.rowsOf[n] = append(c.rowsOf[n], int32(i))
		}
	}
	c.row = func(i int32) *programRow {
		if !c.present {
			return &t.Programs[i]
		}
		r := &programRow{}
		if err := rules.DecodeRow(rows[i], r); err != nil { // a fault in the program, which a test finds
			panic("actionrisk: programs: " + err.Error())
		}
		return r
	}
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
	var subs map[string]*Tool
	if p.Options != nil {
		subs = p.Options.Subs
	}
	if len(t.Sub) == 0 {
		whole := *t
		whole.Subs, p.Options = subs, &whole
		return
	}
	if p.Options == nil {
		p.Options = &Tool{}
	}
	if subs == nil {
		subs = map[string]*Tool{}
		p.Options.Subs = subs
	}
	for _, s := range t.Sub {
		subs[s] = t
	}
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
