package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Apply calls the function that has this name in a language. It returns false if the function is
// not in the tables or the result is unknown.
func (e *Env) Apply(lang, fn string, args ...string) (string, bool) {
	f := e.TextFunction(lang, fn)
	if f == nil {
		return "", false
	}
	return e.Make(f.Does, args...)
}

// Make calls a function of scan.Functions, within the limits of the evaluation.
func (e *Env) Make(does string, args ...string) (string, bool) {
	f, size := scan.Functions[does], 0
	for _, a := range args {
		size += len(a)
	}
	if size > 2*scan.MaxDecoded || !e.Budget.Spend(1+size/64) {
		return "", false
	}
	if f.Holes {
		text, ok := f.Of(args)
		return text, ok && len(text) <= scan.MaxDecoded
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.IndexByte(a, scan.Hole) >= 0 }) {
		return "", false
	}
	text, ok := f.Of(args)
	if !ok || len(text) > scan.MaxDecoded || e.Decoded+len(text) > scan.MaxDecodedTotal {
		return "", false
	}
	e.Decoded += len(text)
	return strings.ReplaceAll(text, string(scan.Hole), " "), true
}
