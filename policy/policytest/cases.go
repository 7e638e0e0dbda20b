package policytest

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/txtar"
)

// Case is one case of a case file.
type Case struct {
	Name string
	Body []byte // the base with the patch of the case applied
	Want string // the expected result, without white space at the ends
}

// Cases reads a case file. It is a txtar archive: the section "base" is a valid request, and every
// other section is one case, named after what it shows:
//
//	-- base --
//	{"payment": {"method": "GET"}}
//	-- another method than expected --
//	{"expected": {"method": "POST"}}
//	---
//	deny: method_mismatch
//
// The text before the line "---" is a JSON merge patch (RFC 7396) for the base. The text after it
// is the expected result, in a form that the test defines.
func Cases(t testing.TB, file string) []Case {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var base []byte
	var cases []Case
	for _, section := range archive.Files {
		if section.Name == "base" {
			base = section.Data
			continue
		}
		patch, want, ok := strings.Cut(string(section.Data), "\n---\n")
		if !ok {
			t.Fatalf("%s: no line between patch and answer", section.Name)
		}
		body, err := Merge(base, []byte(patch))
		if err != nil {
			t.Fatalf("%s: %v", section.Name, err)
		}
		cases = append(cases, Case{section.Name, body, strings.TrimSpace(want)})
	}
	return cases
}

// Merge applies a JSON merge patch: it merges objects, removes a member whose patch is null, and
// replaces any other value.
func Merge(base, patch []byte) ([]byte, error) {
	var b, p any
	if err := json.Unmarshal(base, &b); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, err
	}
	return json.Marshal(merge(b, p), json.Deterministic(true))
}

func merge(base, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, ok := base.(map[string]any)
	if !ok {
		merged = map[string]any{}
	}
	for name, value := range changes {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(merged[name], value)
		}
	}
	return merged
}
