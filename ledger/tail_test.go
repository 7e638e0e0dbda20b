package ledger

import "testing"

// A reader gets every event of the tail once and in order, with appended batches of all sizes. It
// never keeps more than one block in memory.
func TestTail(t *testing.T) {
	t.Parallel()
	var held tail
	position, read := int64(0), int64(0)
	for n := 1; position < 4*tailBlock*tailBlocks; n = n*3%997 + 1 {
		events := make([]Event, n)
		for i := range events {
			position++
			events[i].Position = position
		}
		held.add(events)
		if held.last() != position {
			t.Fatalf("last is %d after %d", held.last(), position)
		}
		for read < position {
			batch := held.after(read)
			if len(batch) == 0 || cap(batch) > tailBlock {
				t.Fatalf("behind %d of %d: %d events, room for %d", read, position, len(batch), cap(batch))
			}
			for _, e := range batch {
				if read++; e.Position != read {
					t.Fatalf("position %d where %d was due", e.Position, read)
				}
			}
		}
	}
	if oldest := position - tailBlock*(tailBlocks-1); len(held.after(oldest)) == 0 {
		t.Errorf("position %d of %d is gone", oldest+1, position)
	}
	for _, absent := range []int64{0, position - tailBlock*tailBlocks - 1, position, position + 1} {
		if got := held.after(absent); got != nil {
			t.Errorf("behind %d of %d: %d events", absent, position, len(got))
		}
	}
	held.add([]Event{{Position: position + 5}})
	if got := held.after(position); got != nil {
		t.Errorf("a reader was given %d events across a gap", len(got))
	}
	if got := held.after(position + 4); len(got) != 1 {
		t.Errorf("behind the gap: %d events", len(got))
	}
}
