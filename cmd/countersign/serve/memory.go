package serve

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	memoryEvery = 10 * time.Second
	memoryWorth = 32 << 20 // bytes; less memory is not worth a garbage collection
)

// returnMemory returns unused memory to the system after a load, until ctx ends. The runtime keeps
// memory for its next garbage collection, which without load takes place only after two minutes.
func returnMemory(ctx context.Context) {
	seen := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	read := func() (cycles, held uint64) {
		metrics.Read(seen)
		return seen[0].Value.Uint64(), seen[1].Value.Uint64() - seen[2].Value.Uint64()
	}
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	before, least := uint64(0), uint64(0) // collections until the last tick; bytes held after memory was last returned
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		cycles, held := read()
		if cycles == before && held > least+memoryWorth {
			debug.FreeOSMemory()
			cycles, least = read()
		}
		before = cycles
	}
}
