package ledger

import (
	"encoding/binary"
	"testing"
)

// The newest keys of each tenant stay in the cache, and older ones are dropped. A key that is
// added again is not dropped earlier.
func TestRecentKeys(t *testing.T) {
	t.Parallel()
	r := newRecent()
	name := func(n int) (k keyName) {
		k.tenant = []string{"a", "ab", ""}[n%3]
		binary.BigEndian.PutUint64(k.key[:], uint64(n))
		return k
	}
	const more = 1000
	for n := range recentKeys + more {
		r.add(name(n), keyHit{position: int64(n)})
		r.add(name(n), keyHit{position: int64(n)})
	}
	for n := range recentKeys + more {
		hit, known := r.find(name(n))
		if known != (n >= more) || known && hit.position != int64(n) {
			t.Fatalf("key %d of %d: %v %v", n, recentKeys+more, hit, known)
		}
	}
	if len(r.ring) != recentKeys || len(r.hits) != recentKeys {
		t.Errorf("%d and %d keys are held", len(r.ring), len(r.hits))
	}
	other := name(more)
	other.tenant = "c"
	if _, known := r.find(other); known {
		t.Error("another tenant's key was found")
	}
}
