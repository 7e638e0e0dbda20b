package contract

import (
	"bytes"
	_ "embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answered contains a running service's answers to the examples of the operations, by operation
// id. TestExamplesAreWhatTheServiceAnswers requests all of them again and fails if an answer has
// another shape. UPDATE_EXAMPLES=1 makes it rewrite the file. Services without a signature are not
// in the file: their answers are computed.
//
//go:embed examples.json
var answered []byte

// ExampleBase is the base URL of the service in examples.json.
const ExampleBase = "https://countersign.example"

// Examples returns the answers with the base URL replaced by that of this service.
func Examples(base string) (byOperation map[string]jsontext.Value, err error) {
	err = json.Unmarshal(bytes.ReplaceAll(answered, []byte(ExampleBase), []byte(base)), &byOperation)
	return byOperation, err
}
