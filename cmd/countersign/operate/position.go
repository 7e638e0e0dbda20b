package operate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// eventPlace is a position as --position names it.
type eventPosition struct {
	partition int16
	named     bool // otherwise it is that of the only partition
	position  int64
}

func parsePosition(text string) (at eventPosition, err error) {
	partition, position, named := strings.Cut(text, ":")
	if !named {
		partition, position = "0", text
	}
	p, wrong := strconv.ParseUint(partition, 10, 15)
	n, alsoWrong := strconv.ParseInt(position, 10, 64)
	if errors.Join(wrong, alsoWrong) != nil || n < 1 {
		return at, errors.New("--position wants a position such as 4711 or, of a ledger with several partitions, 3:4711")
	}
	return eventPosition{int16(p), named, n}, nil
}

// in says whether a ledger of so many partitions has such a place, and only one.
func (at eventPosition) in(partitions int) error {
	switch {
	case partitions > 1 && !at.named:
		return fmt.Errorf("this ledger has %d partitions, each with positions of its own: name one of them, --position PARTITION:%d", partitions, at.position)
	case int(at.partition) >= partitions:
		return fmt.Errorf("this ledger has no partition %d: they are 0 to %d", at.partition, partitions-1)
	}
	return nil
}
