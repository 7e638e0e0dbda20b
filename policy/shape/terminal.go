package shape

// Terminal lists the members that a terminal value needs, by its method. Their names differ
// between a cash-flow analysis and a deal.
func Terminal(method, growth, multiple, metric string) []any {
	return []any{When(Is(method, "gordon"), Given(growth)), When(Is(method, "exitMultiple"), AllGiven(multiple, metric))}
}
