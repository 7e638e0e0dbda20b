package screen

import (
	"errors"
	"io"

	"github.com/countersign/countersign/policy/canon"
)

// ErrNo is an answer of no: the program ends with exit code 1 and writes nothing more.
var ErrNo = errors.New("no")

// Output is where a command writes its result.
type Output struct {
	Stdout, Stderr io.Writer
	JSON           bool // results are written as JSON
	Look
	Progress *Progress // how far the command is; may be nil
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
