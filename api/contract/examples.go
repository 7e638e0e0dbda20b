package contract

import (
	"bytes"
	_ "embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answered are answers of a running service to the examples of operations, by operation.
// TestExamplesAreWhatTheServiceAnswers asks for all of them again, fails if one has another
// shape now, and writes them with UPDATE_EXAMPLES=1. The answers of services without a
// signature are computed instead.
//
//go:embed examples.json
var answered []byte

// ExampleBase is the address of the service in that file.
const ExampleBase = "https://countersign.example"

// Examples returns these answers with the address of this service.
func Examples(base string) (byOperation map[string]jsontext.Value, err error) {
	err = json.Unmarshal(bytes.ReplaceAll(answered, []byte(ExampleBase), []byte(base)), &byOperation)
	return byOperation, err
}
