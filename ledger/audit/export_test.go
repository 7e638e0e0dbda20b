package audit

// InRanges returns options with other bounds of memory.
func (o Options) InRanges(span int64, spill int) Options {
	o.spanEvents, o.spillOctets = span, spill
	return o
}
