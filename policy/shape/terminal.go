package shape

// Terminal lists what a terminal value needs, by its method. The members have other names in
// a cash-flow analysis than in a deal.
func Terminal(method, growth, multiple, metric string) []any {
	return []any{When(Is(method, "gordon"), Given(growth)), When(Is(method, "exitMultiple"), AllGiven(multiple, metric))}
}
