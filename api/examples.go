package api

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answersText is an answer of each operation, by id, as a running service gave it:
// TestExamplesAreWhatTheServiceAnswers holds them to what it answers now, and makes
// them anew with -update.
//
//go:embed examples.json
var answersText []byte

// answerExamples are those answers.
var answerExamples = sync.OnceValue(func() map[string]jsontext.Value {
	var examples map[string]jsontext.Value
	if err := json.Unmarshal(answersText, &examples); err != nil {
		panic("api/examples.json: " + err.Error()) // it is part of the program
	}
	return examples
})
