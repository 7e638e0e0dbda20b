package shape

// Terminal returns the conditions of a terminal value: the members that each method requires. The
// member names are parameters, because a cash-flow analysis and a deal name them differently.
func Terminal(method, growth, multiple, metric string) []any {
	return []any{When(Is(method, "gordon"), Given(growth)), When(Is(method, "exitMultiple"), AllGiven(multiple, metric))}
}
