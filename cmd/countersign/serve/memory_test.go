package serve

import (
	"context"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// After a load the memory that it took goes back to the system, without a further call.
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
		// Other tests of the package may collect meanwhile, which counts as load.
		for tries := 0; tries < 1000 && held() > most-7*memoryWorth; tries++ {
			time.Sleep(memoryEvery)
		}
		stop()
	})
	if now := held(); now > most-7*memoryWorth {
		t.Errorf("%d MB are held, %d with the load", now>>20, most>>20)
	}
}
