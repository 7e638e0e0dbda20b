package contract

import (
	"bytes"
	_ "embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answered are answers of a running service to the examples of operations, by
// operation: TestExamplesAreWhatTheServiceAnswers asks for all of them again, fails
// where one has another shape now, and writes them with UPDATE_EXAMPLES=1. The
// answers of services without a signature are not among them: they are computed.
//
//go:embed examples.json
var answered []byte

// ExampleBase stands in the file where the address of the service does.
const ExampleBase = "https://countersign.example"

// Examples reads them, with the address of this service.
func Examples(base string) (byOperation map[string]jsontext.Value, err error) {
	err = json.Unmarshal(bytes.ReplaceAll(answered, []byte(ExampleBase), []byte(base)), &byOperation)
	return byOperation, err
}
