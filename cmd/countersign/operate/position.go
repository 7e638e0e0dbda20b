package operate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// eventPosition is a parsed value of --position.
type eventPosition struct {
	partition int16
	named     bool // false: the text names no partition, so the ledger must have only one
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
		return at, errors.New("--position must be a position such as 4711 or, if the ledger has several partitions, 3:4711")
	}
	return eventPosition{int16(p), named, n}, nil
}

// in returns an error if the position does not identify a partition of the ledger.
func (at eventPosition) in(partitions int) error {
	switch {
	case partitions > 1 && !at.named:
		return fmt.Errorf("this ledger has %d partitions, each with its own positions: name one as --position PARTITION:%d", partitions, at.position)
	case int(at.partition) >= partitions:
		return fmt.Errorf("this ledger has no partition %d: they are 0 to %d", at.partition, partitions-1)
	}
	return nil
}
