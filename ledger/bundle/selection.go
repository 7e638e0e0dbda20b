package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// SelectionSchema is the schema of a manifest with a Selection. Its bundle contains the events
// that match the filters and not the whole history.
const SelectionSchema = "svc-selection-v1"

// ClaimSchema is the schema of a Claim.
const ClaimSchema = "svc-export-request-v1"

// ClaimType is the payload type of a Claim's envelope.
const ClaimType = "application/vnd.svc.export-request.v1+json"

// Selection is the manifest's member selection. It lists the series that the filters select. For
// each series the bundle also contains the event before and the event after the period, without
// their payloads.
type Selection struct {
	Agent   string  `json:"agent,omitempty"` // id of the data key of the agent in the filters
	Through int64   `json:"through"`         // last position of the ledger when the export was requested
	Claim   int64   `json:"claim"`           // position of the event export.requested
	Series  []Range `json:"series"`
}

// Range is a series in a selection: the numbers in the period, and the newest number up to Through
// with the hash of its event. If the period has no numbers, Last is below First.
type Range struct {
	Series     string `json:"series"`
	First      int64  `json:"first"`
	Last       int64  `json:"last"`
	Newest     int64  `json:"newest"`               // 0 if the series has no number
	NewestHash string `json:"newestHash,omitempty"` // in hex
}

// Ends returns the first and the last number in the bundle: the number before the period and the
// number after it, if these exist.
func (r Range) Ends() (low, high int64) { return max(r.First-1, 1), min(r.Last+1, r.Newest) }

// Claim is the record in the event export.requested. The event is appended before the files are
// written and fixes which numbers each series has up to the position Through. If the service shows
// another number up to Through later, that number contradicts the claim.
type Claim struct {
	Schema   string   `json:"schema"` // svc-export-request-v1
	ExportID string   `json:"exportId"`
	Tenant   string   `json:"tenant"`
	Filters  Filters  `json:"filters"`
	Agent    string   `json:"agent,omitempty"`
	Through  int64    `json:"through"`
	Series   []Newest `json:"series"`
	IssuedAt string   `json:"issuedAt"`
}

// Newest is the newest number of a series in a Claim.
type Newest struct {
	Series string `json:"series"`
	Newest int64  `json:"newest"`
	Hash   string `json:"newestHash,omitempty"`
}

// Selects reports whether the filters request a selection. Otherwise they request the whole
// history of a period.
func (f Filters) Selects() bool {
	return f.Protocol != "" || f.Decision != "" || f.Agent != "" || f.Run != ""
}

// Series lists the series that the filters select.
func (f Filters) Series() []string {
	names := events.SeriesNames(events.TypeDecisionRecorded)
	if f.Decision != "" {
		names = []string{"decision/" + f.Decision}
	}
	if f.Receipts {
		names = slices.Concat(names, events.SeriesNames(events.TypeApprovalRecorded), events.SeriesNames(events.TypeReceiptRecorded))
	}
	return names
}

// narrows reports whether the filters exclude payloads within the selected series.
func (f Filters) narrows() bool { return f.Protocol != "" || f.Run != "" }

// shown is a Range with the state of its verification.
type shown struct {
	Range
	n    int64 // last number read so far
	hash ledger.Hash
}

// due returns the number that must come next.
func (r *shown) due() int64 {
	if r.n > 0 {
		return r.n + 1
	}
	low, _ := r.Ends()
	return low
}

// selectionForm parses the manifest's member selection. The text must be exactly what the service
// would write.
func (v *verifier) selectionForm(text jsontext.Value) bool {
	s := &Selection{}
	switch {
	case !decodes(text, s):
		return false
	case s.Through < 1 || s.Claim <= s.Through || v.m.CheckpointSize < s.Claim:
		return false
	case (s.Agent != "") != (v.m.Filters.Agent != "") || strings.ContainsFunc(s.Agent, func(c rune) bool { return c <= ' ' || c > '~' }):
		return false
	}
	for _, r := range s.Series {
		if r.First < 1 || r.Last < r.First-1 || r.Newest < r.Last || (r.Newest > 0) != (r.NewestHash != "") || r.Newest > 0 && !isHex(r.NewestHash) {
			return false
		}
		v.ranges = append(v.ranges, &shown{Range: r})
	}
	v.selection = s
	names := v.m.Filters.Series()
	return v.m.Filters.Selects() && slices.EqualFunc(s.Series, names, func(r Range, name string) bool { return r.Series == name })
}

// selected verifies the events of a selection.
func (v *verifier) selected(ctx context.Context) error {
	const name = eventsFile
	wanted, err := v.proven(ctx)
	if err != nil {
		return err
	}
	count, withheld, hidden, claimed, last := int64(0), int64(0), int64(0), false, ""
	if err := v.lines(ctx, name, func(n int, text []byte) error {
		bad := func(what string) error { return falsef("%s line %d: %s", name, n, what) }
		l, e, no := v.listed(text)
		switch {
		case no != "":
			return bad(no)
		case claimed, l.Position > v.selection.Through && l.Position != v.selection.Claim:
			return bad("pos")
		}
		count, last = count+1, l.Hash
		v.remember(&l, &e, wanted)
		// The event must be in a listed series, be the claim, or be an approval or receipt.
		neighbour, prior := false, v.m.PriorDecisions
		switch r := v.rangeOf(&e); {
		case r != nil:
			no := ""
			if neighbour, no = v.numberIn(r, &l, &e); no != "" {
				return falsef("%s", no)
			}
			v.edge(r, &e)
		case l.Position == v.selection.Claim && l.Type == events.TypeExportRequested && l.Payload != nil:
			claimed = true
			v.ends[l.Position] = true
		case l.Payload == nil || l.Type != events.TypeApprovalRecorded && l.Type != events.TypeReceiptRecorded:
			return bad("selection")
		default:
			prior = nil // the decision must be in the bundle
			v.ends[l.Position] = true
		}
		// If the payload is shown, its record must be valid.
		if l.Payload == nil {
			if withheld++; !neighbour {
				hidden++
			}
		} else if what := v.record(l, prior); what != "" {
			return bad(what)
		} else if claimed && !v.repeats(e.Payload) {
			return bad("claim")
		} else if v.tally != nil {
			v.tally.Add(l.Type, l.Series, e.Payload)
		}
		v.meet(&l)
		return nil
	}); err != nil {
		return err
	}
	// Each series must be complete, and the totals must match the manifest.
	for _, r := range v.ranges {
		if no := v.ended(r); no != "" {
			return falsef("%s", no)
		}
	}
	switch {
	case !claimed:
		return falsef("%s: claim", name)
	case count != v.m.Count:
		return falsef("%s: count", name)
	case last != v.m.LastHash:
		return falsef("%s: lastHash", name)
	case withheld != v.m.Withheld:
		return falsef("manifest.json: withheld")
	}
	v.sayHidden(hidden)
	v.sayRanges()
	return v.stated()
}

// listed parses a line of a bundle that does not contain every event of its tenant. The event must
// come after the previous one, match its own hash, and be in a series of its type. no names the
// check that failed.
func (v *verifier) listed(text []byte) (l ledger.Line, e ledger.Event, no string) {
	l, e, ok := parseLine(text)
	switch {
	case !ok:
		no = "form"
	case l.Tenant != v.m.Tenant:
		no = "tenant"
	case int64(l.P) != v.m.Partition:
		no = "p"
	case l.Position <= v.last:
		no = "pos"
	case l.Sequence <= v.sequence, v.sequence == 0 && l.Sequence != v.m.FirstSequence:
		no = "tseq"
	case l.Payload != nil && e.PayloadHash != sha256.Sum256(e.Payload):
		no = "payload_hash"
	case e.Sum() != e.Hash:
		no = "hash"
	case l.OccurredUS < v.occurred:
		no = "occurred_us"
	case !events.IsSeries(e.Type, e.Series):
		no = "series"
	case !v.hasAgent(&e):
		no = "agent"
	}
	v.sequence, v.occurred = l.Sequence, l.OccurredUS
	return l, e, no
}

// rangeOf returns the series of the selection that contains an event, or nil.
func (v *verifier) rangeOf(e *ledger.Event) *shown {
	if e.Series == "" || v.selection.Agent != "" && e.Agent != v.selection.Agent {
		return nil
	}
	i := slices.IndexFunc(v.ranges, func(r *shown) bool { return r.Series == e.Series })
	if i < 0 {
		return nil
	}
	return v.ranges[i]
}

// edge marks the events at both ends of a series, which must have a proof. Hash links bind the
// events between them.
func (v *verifier) edge(r *shown, e *ledger.Event) {
	low, high := r.Ends()
	if n, _ := e.Number(v.selection.Agent); n == low || n == high {
		v.ends[e.Position] = true
	}
}

// numberIn returns what is wrong with the number of an event in a series of the selection.
// neighbour reports whether it is the number before or after the period.
func (v *verifier) numberIn(r *shown, l *ledger.Line, e *ledger.Event) (neighbour bool, no string) {
	series := seriesIn(r.Series, v.selection.Agent)
	say := func(format string, args ...any) (bool, string) {
		return neighbour, series + ": " + fmt.Sprintf(format, args...)
	}
	n, prev := e.Number(v.selection.Agent)
	due := r.due()
	if outcome, kind, other := v.otherKind(l); other {
		return say("%d is %s %q", n, article(kind), outcome)
	}
	switch {
	case n > due:
		return say("%d is missing", due)
	case n < due, r.n > 0 && string(prev) != string(r.hash[:]):
		return say("%d does not follow %d", n, max(r.n, due-1))
	case n > r.Last+1:
		return say("%d is not in the period", n)
	case n == r.Newest && e.Hash.String() != r.NewestHash:
		return say("%d is not the newest that was claimed", n)
	}
	r.n, r.hash = n, e.Hash
	neighbour = n < r.First || n > r.Last
	switch {
	case n < r.First && (v.from == 0 || l.OccurredUS >= v.from):
		return say("%d is not earlier", n)
	case n > r.Last && (v.to == 0 || l.OccurredUS < v.to):
		return say("%d is not later", n)
	case !neighbour && v.isOutside(l.OccurredUS):
		return say("%d is not in the period", n)
	case neighbour && l.Payload != nil:
		return say("%d has a payload, and is outside of the period", n)
	case !neighbour && l.Payload == nil && !v.m.Filters.narrows():
		return say("%d has no payload", n)
	}
	return neighbour, ""
}

// otherKind reports whether the payload of an event belongs to another series, and returns the
// outcome and kind of that series.
func (v *verifier) otherKind(l *ledger.Line) (outcome, kind string, other bool) {
	if l.Payload == nil {
		return "", "", false
	}
	members, err := canon.Members([]byte(*l.Payload))
	if err != nil || !isPayload(*l.Payload) {
		return "", "", false // record reports the malformed payload
	}
	said, _ := canon.Members(members["record"]) // empty if the record is missing or not an object
	series, known := events.SeriesBy(l.Type, func(member string) string { return textOf(said[member]) })
	kind, outcome, _ = strings.Cut(series, "/")
	return outcome, kind, known && series != l.Series
}

// ended returns what is missing at the end of a series, or an empty text.
func (v *verifier) ended(r *shown) string {
	series := seriesIn(r.Series, v.selection.Agent)
	_, high := r.Ends()
	switch {
	case r.n < high:
		return fmt.Sprintf("%s: %d is missing", series, r.due())
	case v.m.Filters.To == "" && r.Newest > r.Last:
		return fmt.Sprintf("%s: %d is missing", series, r.Last+1)
	}
	return ""
}

// repeats reports whether the payload of export.requested makes the same claim as the manifest.
func (v *verifier) repeats(payload []byte) bool {
	members, err := canon.Members(payload)
	if err != nil {
		return false
	}
	record, err := canon.Members(members["record"])
	if err != nil || !isCanonical(members["record"]) || members["integrity"] == nil || integrityOf(members["integrity"]).PayloadType != ClaimType {
		return false
	}
	filters, err := canon.Members(record["filters"])
	if err != nil {
		return false
	}
	sealed, _ := canon.Members(members["sealed"]) // empty if it is missing or not an object
	if v.selection.Agent != "" && (!isCommitment(filters["agent"]) || textOf(sealed["keyId"]) != v.selection.Agent) {
		return false
	}
	withoutAgent := func(filters map[string]jsontext.Value) string {
		filters = maps.Clone(filters)
		if filters["agent"] != nil { // the claim has a commitment instead of the agent's name
			filters["agent"] = jsontext.Value(`""`)
		}
		return string(canon.Object(filters))
	}
	wanted := make([]Newest, len(v.ranges))
	for i, r := range v.ranges {
		wanted[i] = Newest{r.Series, r.Newest, r.NewestHash}
	}
	series, err := canon.Marshal(wanted)
	return err == nil && textOf(record["schema"]) == ClaimSchema && textOf(record["exportId"]) == v.m.ExportID && textOf(record["tenant"]) == v.m.Tenant &&
		textOf(record["agent"]) == v.selection.Agent && string(record["through"]) == fmt.Sprint(v.selection.Through) &&
		bytes.Equal(record["series"], series) && withoutAgent(filters) == withoutAgent(v.filters)
}

func pinRollback(series string, newest, seen int64) reason {
	return reason(fmt.Sprintf("pin: ROLLBACK: %s: %d is the newest, and you have seen %d", series, newest, seen))
}

// pinnedSeries compares the numbers in the pin with the series of a selection, or with those of a
// history that reaches to its end. It updates the pin.
func (v *verifier) pinnedSeries(kept *checkpoint.Pin) error {
	if v.fork != "" {
		return v.fork
	}
	if v.m.Schema == Schema && v.m.Filters.To == "" {
		for _, name := range slices.Sorted(maps.Keys(kept.Tenants)) {
			tenant, series, agent := checkpoint.SplitName(name)
			last, here := v.series[shortSum(series, agent)]
			if seen := kept.Tenants[name].Sequence; tenant == v.m.Tenant && series != "" && (here || v.m.FirstSequence == 1) && last.n < seen {
				return pinRollback(seriesIn(series, agent), last.n, seen)
			}
		}
	}
	for _, r := range v.ranges {
		series, name := seriesIn(r.Series, v.selection.Agent), checkpoint.SeriesName(v.m.Tenant, r.Series, v.selection.Agent)
		switch seen := kept.Tenants[name]; {
		case r.Newest == seen.Sequence && r.Newest > 0 && r.NewestHash != seen.Hash:
			return pinFork(series, seen.Sequence)
		case r.Newest < seen.Sequence:
			return pinRollback(series, r.Newest, seen.Sequence)
		case r.Newest > 0:
			kept.Tenants[name] = checkpoint.Seen{Sequence: r.Newest, Hash: r.NewestHash}
		}
	}
	return nil
}

// sayRanges reports what a selection proves about each series and what it does not prove.
func (v *verifier) sayRanges() {
	f := v.m.Filters
	period := ""
	if f.From != "" || f.To != "" {
		period = ", " + strings.TrimSpace(f.From+" to "+f.To)
	}
	numbered := int64(0)
	for _, r := range v.ranges {
		numbered += r.Last - r.First + 1
		series := seriesIn(r.Series, v.selection.Agent)
		before := "1 is the first"
		if r.First > 1 {
			before = fmt.Sprintf("%d is earlier", r.First-1)
		}
		switch {
		case r.Newest > r.Last && r.Last >= r.First:
			v.result.Proven = append(v.result.Proven, fmt.Sprintf("complete: %s: %d to %d%s (%s, %d is later)", series, r.First, r.Last, period, before, r.Last+1))
			continue
		case r.Newest > r.Last:
			v.result.Proven = append(v.result.Proven, fmt.Sprintf("none: %s%s (%s, %d is later)", series, period, before, r.Last+1))
			continue
		case r.Last >= r.First:
			v.result.Proven = append(v.result.Proven, fmt.Sprintf("without a gap: %s: %d to %d", series, r.First, r.Last))
		}
		if r.Newest == 0 {
			v.result.Stated = append(v.result.Stated, fmt.Sprintf("at position %d: %s: no number was ever given up to %d", v.selection.Claim, series, v.selection.Through))
		} else {
			v.result.Stated = append(v.result.Stated, fmt.Sprintf("at position %d: %s: %d is the newest up to %d", v.selection.Claim, series, r.Newest, v.selection.Through))
		}
	}
	v.gap("that each event was numbered as its record says (checked for the %d shown; an export of the whole history or countersign verify checks all)", numbered)
	if f.Agent != "" {
		v.gap("that the agent of the filters had no other data key (countersign verify with DATA_KEK checks this, except for erased keys)")
	}
	if !f.Receipts {
		v.gap("that no approval or receipt of these decisions is left out (an export of an agent with --receipts proves this)")
	}
}
