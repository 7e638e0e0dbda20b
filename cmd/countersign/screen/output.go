package screen

import (
	"errors"
	"io"
	"strings"

	"github.com/countersign/countersign/policy/canon"
)

// ErrNo ends the program with exit code 1 and prints nothing: the command has worked, and its
// answer is no.
var ErrNo = errors.New("no")

// Output is the output of a command, with its format.
type Output struct {
	Stdout, Stderr io.Writer
	JSON           bool // write results as JSON
	Quiet          bool // write the result only, without advice
	Look
	Progress *Progress // progress line; nil shows none
}

// Result writes value as JSON if JSON is set, and text otherwise.
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

// Made writes the result of a command that creates something, such as a token. It writes the bare
// value to standard output, so that a script can use it, and advice to standard error. If JSON is
// set, it writes value as JSON instead.
func (o *Output) Made(value any, bare, about string) error {
	if err := o.Result(value, bare+"\n"); err != nil || o.JSON || o.Quiet {
		return err
	}
	_, err := io.WriteString(o.Stderr, strings.TrimSuffix(about, "\n")+"\n")
	return err
}
