package migrations

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every worker gets its share of the partitions, and a shard that is on the right worker is not
// moved.
func TestEveryWorkerHoldsItsShare(t *testing.T) {
	a, b := worker{"a", 5432}, worker{"b", 5432}
	at := func(w worker, shard int64, partitions int) piece { return piece{shard, w.Host, w.Port, partitions} }
	for name, test := range map[string]struct {
		pieces []piece
		want   []move
	}{
		"one":            {[]piece{at(b, 1, 1)}, []move{{at(b, 1, 1), a}}},
		"already even":   {[]piece{at(a, 1, 1), at(b, 2, 1)}, nil},
		"all on one":     {[]piece{at(a, 1, 2), at(a, 2, 1), at(a, 3, 1)}, []move{{at(a, 2, 1), b}, {at(a, 3, 1), b}}},
		"nothing begins": {nil, nil},
	} {
		if diff := cmp.Diff(test.want, moves([]worker{a, b}, test.pieces), cmp.AllowUnexported(move{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
