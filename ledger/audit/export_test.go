package audit

// InRanges sets the number of events in a range and the size of a bucket in memory.
func (o Options) InRanges(span int64, spill int) Options {
	o.spanEvents, o.spillOctets = span, spill
	return o
}
