package commands

import (
	"maps"
	"sync"
)

// most is how many values a cache holds.
const most = 10_000

// cache remembers folds of streams by their id. When it is full it is emptied. What it holds
// may be stale: an append names the version it depends on, and a refusal that depends on a
// cached value is confirmed. The zero value is ready to use.
type cache[V any] struct {
	mu     sync.Mutex // guards values
	values map[string]V
}

// get returns the value of an id.
func (c *cache[V]) get(id string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.values[id]
	return v, ok
}

// put remembers a value.
func (c *cache[V]) put(id string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= most {
		c.values = map[string]V{}
	}
	c.values[id] = v
}

// remove forgets the value of an id.
func (c *cache[V]) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, id)
}

// forget removes every value for which isGone is true.
func (c *cache[V]) forget(isGone func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.values, func(_ string, v V) bool { return isGone(v) })
}
