package commands

import (
	"maps"
	"sync"
)

// cache remembers folds of streams by their id, at most cachedFolds of them: full, it
// begins anew. What it holds may be stale: an append guards the version it rests on,
// and a refusal that rests on it is confirmed. The zero value is ready.
type cache[V any] struct {
	mu     sync.Mutex // guards values
	values map[string]V
}

func (c *cache[V]) get(id string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.values[id]
	return v, ok
}

func (c *cache[V]) put(id string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil || len(c.values) >= cachedFolds {
		c.values = map[string]V{}
	}
	c.values[id] = v
}

func (c *cache[V]) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, id)
}

// forget takes out every value of which this is true.
func (c *cache[V]) forget(isGone func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.values, func(_ string, v V) bool { return isGone(v) })
}
