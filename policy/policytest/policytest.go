// Package policytest has helpers for the tests of all services. They evaluate a request, read
// members of an answer, check the code and the path of a refusal, and check that the same request
// always gets the same bytes.
package policytest

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// TB has the methods of testing.TB that the helpers need; *rapid.T has them too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Must returns evaluate(in). The test fails if evaluate refuses the input.
func Must[I, O any](t TB, evaluate func(I) (O, error), in I) O {
	t.Helper()
	out, err := evaluate(in)
	if err != nil {
		t.Fatalf("%.300v: %v", in, err)
	}
	return out
}

// Ask is like Must. The input is given as the members of a JSON object, without the braces.
func Ask[I, O any](t TB, evaluate func(I) (O, error), members string) O {
	t.Helper()
	var in I
	if err := canon.Decode([]byte("{"+members+"}"), &in); err != nil {
		t.Fatalf("%.200s: %v", members, err)
	}
	return Must(t, evaluate, in)
}

// Members returns the members of the service's answer to a request.
func Members(t TB, service policy.Service, request string) map[string]any {
	t.Helper()
	a, err := service.Evaluate([]byte(request))
	if err != nil {
		t.Fatalf("%.200s: %v", request, err)
	}
	var members map[string]any
	if err := json.Unmarshal(a.Body, &members); err != nil {
		t.Fatalf("%.200s: %v", request, err)
	}
	return members
}

// IDs returns the ids of the findings in their order. It returns an empty list rather than nil.
func IDs(findings []policy.Finding) []string {
	ids := make([]string, len(findings))
	for i := range findings {
		ids[i] = findings[i].ID
	}
	return ids
}

// Refused checks that err is a refusal with this code and path. Otherwise the test fails, and the
// message contains the request.
func Refused(t TB, request any, err error, code, path string) {
	t.Helper()
	var refusal *policy.Error
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.Path != path {
		t.Errorf("%.200v: got %+v (%v), want %s at %s", request, refusal, err, code, path)
	}
}

// FuzzPure searches for a request that gets an error other than a refusal, or two different
// answers. The service's own example is a seed.
func FuzzPure(f *testing.F, service policy.Service, seeds ...string) {
	f.Add([]byte(service.Example))
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := service.Evaluate(body)
		b, again := service.Evaluate(body)
		var refusal *policy.Error
		if err != nil && !errors.As(err, &refusal) {
			t.Fatalf("not a refusal: %v", err)
		}
		if string(a.Body) != string(b.Body) || (err == nil) != (again == nil) {
			t.Fatal("two answers to one request")
		}
	})
}
