package normal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/normal"
)

func TestLeaves(t *testing.T) {
	any := func(string) bool { return true }
	var got []string
	for l := range normal.Leaves([]byte(`{"a":["x",1.5,[true,null]],"b c":{"d":{"e":1e15,"f":"y"}},"g":"z"}`)) {
		got = append(got, l.Pointer("/in", any)+" "+l.Name+"="+l.Text)
	}
	want := []string{"/in/a =a", "/in/a/0 a=x", "/in/a/1 a=1.5", "/in =b c", "/in =d", "/in =e", "/in e=1000000000000000", "/in =f", "/in f=y", "/in/g =g", "/in/g g=z"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Pointer stops before a name that the caller may have invented, and before a name for which the
// function passes returns false.
func TestLeafPointers(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"b":"x"}}`:      "/a/b",
		`{"a":{"b/c":"x"}}`:    "/a",
		`{"":{"b":"x"}}`:       "",
		`{"secret":{"b":"x"}}`: "",
		`{"a":{"` + strings.Repeat("n", 65) + `":"x"}}`: "/a",
	} {
		for l := range normal.Leaves([]byte(text)) {
			if got := l.Pointer("", func(name string) bool { return name != "secret" }); l.Text == "x" && got != want {
				t.Errorf("%s: got %q, want %q", text, got, want)
			}
		}
	}
}

// Leaves stops when the caller ends the loop.
func TestLeavesStop(t *testing.T) {
	seen := 0
	for range normal.Leaves([]byte(`{"a":[1,2,{"b":3}],"c":4}`)) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d leaves", seen)
	}
}
