// Package cache remembers what streams fold to, so that a command need not read them.
package cache

import (
	"maps"
	"sync"
)

// most is how many values a cache holds.
const most = 10_000

// Cache remembers folds of streams by their id. When it is full it is emptied. What it holds
// may be stale: an append names the version it depends on, and a refusal that depends on a
// cached value is confirmed. The zero value is ready to use.
type Cache[V any] struct {
	mu     sync.Mutex // guards values
	values map[string]V
}

// Get returns the value of an id.
func (c *Cache[V]) Get(id string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.values[id]
	return v, ok
}

// Put remembers a value.
func (c *Cache[V]) Put(id string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= most {
		c.values = map[string]V{}
	}
	c.values[id] = v
}

// Remove forgets the value of an id.
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
