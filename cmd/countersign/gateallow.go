package main

import (
	"fmt"
	"os"
	"time"

	"github.com/countersign/countersign/cmd/countersign/guard"
)

// gateAllowCmd writes an exception.
type gateAllowCmd struct {
	Rule   string        `arg:"" optional:"" help:"Id of the rule, as the verdict names it."`
	Action string        `help:"Instead of a rule: the hash of one exact action, as gate log shows it." placeholder:"HASH"`
	Here   bool          `help:"Only in this folder and below; the exception stands in its .countersign.json."`
	For    time.Duration `help:"For how long, such as 24h (1d: 24h); without it, until it is taken out." placeholder:"TIME" type:"days"`
	Reason string        `required:"" help:"Why; it stands in the file." placeholder:"TEXT"`
}

// Run adds the exception to the file of this folder, or of the home folder.
func (c *gateAllowCmd) Run(o *output) error {
	folder, err := os.UserHomeDir()
	here, err2 := os.Getwd()
	if c.Here {
		folder, err = here, err2
	}
	if err != nil {
		return fmt.Errorf("find the folder: %w", err)
	}
	e := guard.Exception{Rule: c.Rule, Action: c.Action, Reason: c.Reason}
	if c.Here {
		e.Path = here
	}
	if c.For > 0 {
		e.Until = time.Now().Add(c.For).UTC().Format(time.RFC3339)
	}
	file, err := guard.Allow(folder, e)
	if err != nil {
		return err
	}
	text := "written to " + file + "\n"
	if most, err := guard.AllowedUpTo(); err == nil {
		text += "it lowers rules up to " + most.String() + " risk\n"
	}
	return o.result(e, text)
}
