package screen

import (
	"errors"
	"io"

	"github.com/countersign/countersign/policy/canon"
)

// ErrNo makes the program end with exit code 1 and no further output: the command worked, and
// the answer is no.
var ErrNo = errors.New("no")

// Output is where a command writes its result.
type Output struct {
	Stdout, Stderr io.Writer
	JSON           bool // results are written as JSON
	Quiet          bool // nothing is written about a result, only the result
	Look
	Progress *Progress // shows the progress of the command; may be nil
}

// Result writes a value as JSON if that was asked for, and the text otherwise.
func (o *Output) Result(value any, text string) error {
	if o.JSON {
		body, err := canon.Marshal(value)
		if err != nil {
			return err
		}
		text = string(body) + "\n"
	}
	o.Progress.End()
	_, err := io.WriteString(o.Stdout, text)
	return err
}

// Made writes what a command has made, such as a token or an id: the bare value to standard
// output, so that a script takes it as it is, and what a person should know about it to
// standard error. It writes value as JSON instead if that was asked for.
func (o *Output) Made(value any, bare, about string) error {
	if err := o.Result(value, bare+"\n"); err != nil || o.JSON || o.Quiet {
		return err
	}
	_, err := io.WriteString(o.Stderr, about+"\n")
	return err
}
