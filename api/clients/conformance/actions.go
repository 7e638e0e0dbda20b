package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/policy/actionrisk"
)

// Actions returns the requests with which the engine is compared in Go, in Node and in a browser:
// the labelled actions of policy/actionrisk/testdata, every line of the other texts there as a
// command, and some invalid requests. The meaning of the lines does not matter, because the test
// checks only that all three give the same answers.
func Actions(testdata string) (requests []string, err error) {
	text, err := os.ReadFile(filepath.Join(testdata, "levels.jsonl"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var labelled struct{ Action json.RawMessage }
		if err := json.Unmarshal(line, &labelled); err != nil {
			return nil, err
		}
		requests = append(requests, string(labelled.Action))
	}
	requests = append(requests, `{"command":" x"}`, `{"command":""}`, `{}`, `[]`, `{"command":"ls","COMMAND":"rm -rf /"}`, `{"command":"echo ü😀"}`, `{"command":"a","failClosedOnUnmatched":true}`)
	files, err := filepath.Glob(filepath.Join(testdata, "*.txt*"))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, file := range files {
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) == 0 || seen[string(line)] {
				continue
			}
			seen[string(line)] = true
			request, err := json.Marshal(map[string]string{"command": string(line)})
			if err != nil {
				return nil, err
			}
			requests = append(requests, string(request))
		}
	}
	return requests, nil
}

// Verdicts returns the answers of the quick gate in Go: the body, or "refused: " and the reason.
func Verdicts(requests []string) []string {
	verdicts := make([]string, len(requests))
	for i, request := range requests {
		answer, err := actionrisk.Quick.Evaluate([]byte(request))
		if verdicts[i] = string(answer.Body); err != nil {
			verdicts[i] = "refused: " + err.Error()
		}
	}
	return verdicts
}
