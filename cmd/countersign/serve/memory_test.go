package serve

import (
	"context"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// After a load, its memory is returned to the system without another request.
func TestMemoryIsReturnedAfterALoad(t *testing.T) {
	held := func() uint64 {
		seen := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(seen)
		return seen[0].Value.Uint64() - seen[1].Value.Uint64()
	}
	load := make([]byte, 8*memoryWorth)
	for i := 0; i < len(load); i += 4096 {
		load[i] = 1
	}
	most := held()
	load = nil
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go returnMemory(ctx)
		// A garbage collection in another test of the package counts as load, so try repeatedly.
		for tries := 0; tries < 1000 && held() > most-7*memoryWorth; tries++ {
			time.Sleep(memoryEvery)
		}
		stop()
	})
	if now := held(); now > most-7*memoryWorth {
		t.Errorf("%d MB are held, %d with the load", now>>20, most>>20)
	}
}
