package facts

import (
	"maps"
	"slices"

	"github.com/countersign/countersign/policy/canon"
)

// Dict maps names to values with a hash table of open addressing. The compiler writes it into the
// program's data, while a Go map would be filled at every start.
type Dict[T any] struct {
	Entries []Entry[T] // sorted by name
	Slots   []uint16   // index of the entry plus 1, or 0 if free; their number is a power of two, at least twice that of the entries
}

// Entry is a name of a Dict with its value.
type Entry[T any] struct {
	Name string
	Is   T
}

// Get returns the value of a name, or the zero value if the name is not in the Dict.
func (d *Dict[T]) Get(name string) (is T) {
	is, _ = d.Find(name)
	return is
}

// Find returns the value of a name and whether the name is in the Dict.
func (d *Dict[T]) Find(name string) (is T, found bool) {
	if len(d.Slots) == 0 {
		return is, false
	}
	for i := hash(name); ; i++ {
		place := d.Slots[i&uint32(len(d.Slots)-1)]
		if place == 0 {
			return is, false
		}
		if e := &d.Entries[place-1]; e.Name == name {
			return e.Is, true
		}
	}
}

// hash is FNV-1a.
func hash(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// dictOf returns a map as a Dict.
func dictOf[T any](m map[string]T) (d Dict[T]) {
	if len(m) == 0 {
		return d
	}
	size := 2
	for size < 2*len(m) {
		size *= 2
	}
	d.Slots = make([]uint16, size)
	for n, name := range slices.Sorted(maps.Keys(m)) {
		d.Entries = append(d.Entries, Entry[T]{name, m[name]})
		i := hash(name)
		for d.Slots[i&uint32(size-1)] != 0 {
			i++
		}
		d.Slots[i&uint32(size-1)] = uint16(n + 1)
	}
	return d
}

func dictOfDicts[T any](m map[string]map[string]T) Dict[Dict[T]] {
	dicts := make(map[string]Dict[T], len(m))
	for name, inner := range m {
		dicts[name] = dictOf(inner)
	}
	return dictOf(dicts)
}

// setOf returns a list of words as a set.
func setOf(words []string) Dict[bool] {
	m := map[string]bool{}
	for _, word := range words {
		m[word] = true
	}
	return dictOf(m)
}

// asMap returns the Dict as a map.
func (d *Dict[T]) asMap() map[string]T {
	m := make(map[string]T, len(d.Entries))
	for _, e := range d.Entries {
		m[e.Name] = e.Is
	}
	return m
}

// UnmarshalJSON reads an object and takes its member names as the names of the Dict.
func (d *Dict[T]) UnmarshalJSON(text []byte) error {
	var m map[string]T
	err := canon.DecodeChecked(text, &m)
	*d = dictOf(m)
	return err
}
