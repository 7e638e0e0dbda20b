package policytest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy"
)

// Bounds checks that a service enforces the limits that its schema states. For every number in
// the examples (valid requests) with a minimum, maximum, exclusiveMinimum or exclusiveMaximum
// tag, it calls the service with the limit and with a value one step beyond. Beyond the limit
// the service must refuse with out_of_range at the number's path; at the limit it must not.
// Bounds returns the number of limits it tried.
func Bounds(t *testing.T, service policy.Service, examples ...string) int {
	t.Helper()
	tried := map[string]bool{}
	for _, example := range examples {
		var body any
		if err := json.Unmarshal([]byte(example), &body); err != nil {
			t.Fatalf("%s: %v", example, err)
		}
		if _, err := service.Evaluate([]byte(example)); err != nil {
			t.Fatalf("%s: the example is refused: %v", example, err)
		}
		w := walker{t: t, service: service, root: body, tried: tried}
		w.walk("", body, service.Input(), "", func(any) {})
	}
	return len(tried)
}

type walker struct {
	t       *testing.T
	service policy.Service
	root    any
	tried   map[string]bool
}

// walk visits value and its members; typ is the Go type of value. set replaces value by another
// value in the request.
func (w *walker) walk(path string, value any, typ reflect.Type, tag string, set func(any)) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if typ.Kind() != reflect.Struct {
			return
		}
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			member, ok := v[name]
			if !ok || name == "" {
				continue
			}
			w.walk(path+"/"+name, member, f.Type, f.Tag.Get("jsonschema"), func(x any) { v[name] = x })
			v[name] = member
		}
	case []any:
		if typ.Kind() == reflect.Slice && len(v) > 0 {
			first := v[0]
			w.walk(path+"/0", first, typ.Elem(), "", func(x any) { v[0] = x })
			v[0] = first
		}
	case float64:
		w.number(path, tag, typ, set)
	}
}

func (w *walker) number(path, tag string, typ reflect.Type, set func(any)) {
	for _, part := range strings.Split(tag, ",") {
		keyword, text, _ := strings.Cut(part, "=")
		limit, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		outside := math.Inf(1)
		if strings.Contains(keyword, "inimum") {
			outside = math.Inf(-1)
		}
		beyond := math.Nextafter(limit, outside)
		if typ.Kind() == reflect.Int {
			beyond = limit + math.Copysign(1, outside)
		}
		switch keyword {
		case "minimum", "maximum":
			w.ask(path, keyword, limit, false, set)
			w.ask(path, keyword, beyond, true, set)
		case "exclusiveMinimum", "exclusiveMaximum":
			w.ask(path, keyword, limit, true, set)
		default:
			continue
		}
		w.tried[path+" "+keyword] = true
	}
}

func (w *walker) ask(path, keyword string, x float64, refused bool, set func(any)) {
	w.t.Helper()
	set(x)
	body, err := json.Marshal(w.root, json.Deterministic(true))
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.service.Evaluate(body)
	var refusal *policy.Error
	if err != nil && !errors.As(err, &refusal) {
		w.t.Fatalf("%s: not a refusal: %v", path, err)
	}
	got := refusal != nil && refusal.Code == "out_of_range" && refusal.Path == path
	if got != refused {
		w.t.Errorf("%s %s %s: refused %v (%s), want %v", path, keyword,
			fmt.Sprint(x), got, describe(refusal), refused)
	}
}

func describe(e *policy.Error) string {
	if e == nil {
		return "answered"
	}
	return e.Code + " at " + e.Path
}
