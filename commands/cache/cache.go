// Package cache keeps states that were folded from streams, so that a command need not read the
// streams again.
package cache

import (
	"maps"
	"sync"
)

// most is the number of values that a cache can hold.
const most = 10_000

// Cache keeps states of streams by id. When it is full, it is emptied. A state may be outdated. So
// an append names the stream version that it depends on, and before a command refuses because of a
// cached state it reads the stream again. The zero value is ready to use.
type Cache[V any] struct {
	mu     sync.Mutex // guards values
	values map[string]V
}

// Get returns the value of an id, and whether there is one.
func (c *Cache[V]) Get(id string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.values[id]
	return v, ok
}

// Put stores the value of an id.
func (c *Cache[V]) Put(id string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= most {
		c.values = map[string]V{}
	}
	c.values[id] = v
}

// Remove removes the value of an id.
func (c *Cache[V]) Remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, id)
}

// Forget removes every value for which isGone is true.
func (c *Cache[V]) Forget(isGone func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.values, func(_ string, v V) bool { return isGone(v) })
}
