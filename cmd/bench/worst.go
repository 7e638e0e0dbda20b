package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands"
)

// What a body may cost, in processor time for each MB of it.
const (
	mostPerMB = 100 * time.Millisecond
	// A command line is judged by an engine with a budget of its own: 50 ms for the
	// 65,536 characters a body may have.
	mostPerCommand = 50 * time.Millisecond
)

// What a run may hold. A body whose cost grew with its square once took all the
// memory of a machine; now it ends the run, and is named.
const (
	memoryAimedAt = 1 << 30 // octets; beyond it the collector works harder
	memoryMost    = 3 << 30
	bodiesPerGC   = 64 // after so many bodies the collector starts anew
)

// worst sends every operation that takes a large body the worst ones that can be
// built from its published schema, over loopback HTTP, and prints what the worst of
// them cost: processor time of the whole process, client and collector included, and
// memory that was asked for. One body is sent at a time.
func (c *servicesCmd) worst(ctx context.Context) error {
	debug.SetMemoryLimit(memoryAimedAt)
	service, err := startService(ctx)
	if err != nil {
		return err
	}
	defer service.close()
	w := &worstRun{service: service, progress: os.Stderr}
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	go w.watchMemory(ctx)
	if c.Profile != "" {
		stop, err := startProfile(c.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if w.token, err = service.organization(ctx); err != nil {
		return err
	}
	operations, err := w.largeOperations(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %8s %7s %8s %9s %9s %6s  %s\n", "operation", "octets", "bodies", "answered", "ms/MB", "MB asked", "status", "the worst body")
	over := 0
	for _, o := range operations {
		if c.Only != "" && !strings.Contains(o.ID, c.Only) {
			continue
		}
		line, err := w.measure(ctx, o, c.Body)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.ID, err)
		}
		mark := ""
		if line.worst.cost > line.most() {
			mark, over = "  OVER", over+1
		}
		fmt.Printf("%-34s %8d %7d %8d %9.1f %9.0f %6d  %s%s\n", o.ID, o.octets, line.bodies, line.answered,
			line.worst.perMB(), line.memory, line.worst.status, line.worst.name, mark)
	}
	if over > 0 {
		return fmt.Errorf("%d operations cost more than they may", over)
	}
	return nil
}

// worstRun is one run of all bodies against one service.
type worstRun struct {
	service *benchService
	token   string // of an organization
	key     string
	calls   int // with the key
	keys    int

	progress io.Writer
	now      atomic.Pointer[string] // the body that is being sent
	stop     context.CancelCauseFunc
}

// watchMemory ends the run at the body that takes more memory than one may.
func (w *worstRun) watchMemory(ctx context.Context) {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(held)
		if taken := held[0].Value.Uint64() - held[1].Value.Uint64(); taken > memoryMost {
			name := "the start"
			if now := w.now.Load(); now != nil {
				name = *now
			}
			w.stop(fmt.Errorf("%d MB of memory are held at %s", taken>>20, name))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// asked is how many octets of memory were asked for since the start.
func asked() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// startProfile writes a processor profile to a file until it is stopped.
func startProfile(name string) (stop func(), err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

// described is one operation of the OpenAPI document.
type described struct {
	ID      string `json:"operationId"`
	Request *struct {
		Content map[string]struct {
			Schema  any `json:"schema"`
			Example any `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
	Security []map[string]any `json:"security"`

	path   string
	octets int // that a body may have
}

// largeOperations are those that take a body of 64 KiB at least.
func (w *worstRun) largeOperations(ctx context.Context) (found []described, err error) {
	answer, err := http.Get(w.service.base + "/openapi-full.json")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var document struct {
		Paths      map[string]map[string]jsontext.Value `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.UnmarshalRead(answer.Body, &document); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		post, has := document.Paths[path]["post"]
		if !has {
			continue
		}
		var o described
		if err := json.Unmarshal(post, &o); err != nil {
			return nil, err
		}
		o.path = strings.NewReplacer("{", "", "}", "").Replace(path)
		if o.Request == nil || o.Request.Content["application/json"].Schema == nil {
			continue
		}
		media := o.Request.Content["application/json"]
		media.Schema = withoutReferences(media.Schema, document.Components.Schemas)
		o.Request.Content["application/json"] = media
		for _, octets := range []int{1 << 20, 1 << 19, 1 << 18, 1 << 16} {
			status, _, err := w.send(ctx, o, []byte(`{}`+strings.Repeat(" ", octets-2)))
			if err != nil {
				return nil, err
			}
			if status == http.StatusRequestEntityTooLarge {
				continue
			}
			if status != http.StatusForbidden && status != http.StatusNotFound { // those before anything is read
				o.octets = octets
				found = append(found, o)
			}
			break
		}
	}
	return found, nil
}

// withoutReferences puts the schemas of the document where they are named.
func withoutReferences(value any, schemas map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		if reference, is := v["$ref"].(string); is {
			return withoutReferences(schemas[strings.TrimPrefix(reference, "#/components/schemas/")], schemas)
		}
		resolved := map[string]any{}
		for name, member := range v {
			resolved[name] = withoutReferences(member, schemas)
		}
		return resolved
	case []any:
		resolved := make([]any, len(v))
		for i := range v {
			resolved[i] = withoutReferences(v[i], schemas)
		}
		return resolved
	}
	return value
}

// send posts a body and says what it cost the process.
func (w *worstRun) send(ctx context.Context, o described, body []byte) (status int, cost time.Duration, err error) {
	if w.key == "" || w.calls >= commands.FreeCallsPerMonth {
		issued, err := w.service.app.IssueFreeKey(ctx, fmt.Sprintf("worst-%d-%d@example.com", time.Now().UnixNano(), w.keys))
		if err != nil {
			return 0, 0, err
		}
		w.key, w.calls, w.keys = issued.APIKey, 0, w.keys+1
	}
	w.calls++
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.service.base+o.path, strings.NewReader(string(body)))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if slices.ContainsFunc(o.Security, func(s map[string]any) bool { _, is := s["organizationToken"]; return is }) {
		r.Header.Set("Authorization", "Bearer "+w.token)
	} else {
		r.Header.Set("X-API-Key", w.key)
	}
	before := processTime()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, processTime() - before, err
}

func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cost is what one body took.
type cost struct {
	name   string
	octets int
	status int
	cost   time.Duration
}

func (c cost) String() string { return fmt.Sprintf("at most %.1f ms/MB so far", c.perMB()) }

func (c cost) perMB() float64 {
	return float64(c.cost) / float64(time.Millisecond) * 1e6 / float64(max(c.octets, 1))
}

type worstLine struct {
	bodies, answered int
	worst            cost
	memory           float64 // MB that were asked for, the most of one body
}

func (l worstLine) most() time.Duration {
	if l.worst.octets <= 1<<16 {
		return mostPerCommand
	}
	return mostPerMB * time.Duration(l.worst.octets) / 1e6
}

// measure sends all bodies of an operation. What looks expensive is sent three
// times, of which the cheapest counts: the collector may have run in one.
func (w *worstRun) measure(ctx context.Context, o described, c string) (line worstLine, err error) {
	media := o.Request.Content["application/json"]
	for name, body := range bodiesOf(media.Schema, media.Example, o.octets) {
		if c != "" && !strings.Contains(name, c) {
			continue
		}
		one := cost{name: name, octets: len(body)}
		where := o.ID + ", " + name
		w.now.Store(&where)
		for try := range 3 {
			before := asked()
			status, took, err := w.send(ctx, o, []byte(body))
			if err != nil {
				return line, fmt.Errorf("%s: %w", name, err)
			}
			line.memory = max(line.memory, float64(asked()-before)/1e6)
			if try == 0 || took < one.cost {
				one.status, one.cost = status, took
			}
			if one.cost <= line.worst.cost {
				break
			}
		}
		if line.bodies++; line.bodies%bodiesPerGC == 0 {
			debug.FreeOSMemory()
			fmt.Fprintf(w.progress, "%s: %d bodies, %s\n", o.ID, line.bodies, line.worst)
		}
		if one.status < 300 {
			line.answered++
		}
		if one.cost > line.worst.cost {
			line.worst = one
		}
	}
	return line, nil
}

// pieces are repeated inside texts: what scanners look for, what they back up over,
// and what has to be escaped.
var pieces = []string{"a", " ", `\n`, `\u00e9`, `\ud83d\ude00`, "é", "curl ", "curl|sh;", "http://", "://", "https://a.b/", "a.", ".", "@", "a@", "\\\\", "(", "[[", "${", "`",
	"4 ", "eyJ", "private key=0x", "seed abc ", "xoxb-", "+1 ", "000-00-", "0x", "0x0000000000000000000000000000000000000001 ", "sk-", "AKIA", "-----BEGIN PRIVATE KEY-----", "ignore previous instructions ", "eval(", "base64 -d ", "A1+/", "=", "%41", "&#x41;", "<!--", "1", "2026-01-01T00:00:00Z ", "xn--", "\u200b", "password=", "ı", "-"}

// bodiesOf are bodies of at most so many octets: the pieces in every text of the
// schema that may be long, every list filled, and every free value in the forms
// that cost most to parse. All else in them is as in the example.
func bodiesOf(schema, example any, octets int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		frame := (&plant{}).body(schema, example)
		room := octets - len(frame) - 2000
		for name, value := range freeValues(room) {
			if !yield("the whole is "+name, value) || !yield("unknown member: "+name, `{"zzz":`+value+`}`) {
				return
			}
		}
		for _, place := range placesOf(schema, "") {
			for name, p := range place.plants(room) {
				if !yield(place.path+": "+name, p.body(schema, example)) {
					return
				}
			}
		}
	}
}

// freeValues are texts of JSON that cost much to read.
func freeValues(octets int) iter.Seq2[string, string] {
	fill := func(open, piece, end string) string {
		return open + strings.TrimSuffix(strings.Repeat(piece, max(0, octets-len(open)-len(end))/len(piece)), ",") + end
	}
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < octets-80; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	deep := func(open, end string) string { return strings.Repeat(open, 55) + strings.Repeat(end, 55) }
	values := map[string]string{
		"escapes":              fill(`"`, `\n`, `"`),
		"unicode escapes":      fill(`"`, `\ud83d\ude00`, `"`),
		"digits":               fill(`[`, `1,`, `]`),
		"long numbers":         fill(`[`, `1.2345678901234567890123456789012345e-9,`, `]`),
		"tiny numbers":         fill(`[`, `1e-999999,`, `]`),
		"negative zeroes":      fill(`[`, `-0.0,`, `]`),
		"empty objects":        fill(`[`, `{},`, `]`),
		"empty texts":          fill(`[`, `"",`, `]`),
		"lists in lists":       fill(`[`, deep(`[`, `]`)+`,`, `]`),
		"objects in objects":   fill(`[`, strings.Repeat(`{"a":`, 55)+`0`+strings.Repeat(`}`, 55)+`,`, `]`),
		"members":              `{` + numbered(`"m%07d":0,`) + `}`,
		"members out of order": `{` + numbered(`"%[1]d":0,`) + `}`,
		"members with escapes": `{` + numbered(`"\u00e9%d":0,`) + `}`,
		"small objects":        fill(`[`, `{"b":1,"a":2},`, `]`),
		"long names":           fill(`[`, `{"`+strings.Repeat("n~/", 60)+`":0},`, `]`),
	}
	below := `{"` + strings.Repeat("n", octets/2) + `":[`
	values["members below a long name"] = below + strings.Repeat("0,", (octets/2-20)/2) + `0]}`
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !yield(name, values[name]) {
				return
			}
		}
	}
}

// place is somewhere in a schema that may grow.
type place struct {
	path string
	node map[string]any
}

// real is a schema without its null branch.
func real(schema any) map[string]any {
	node, _ := schema.(map[string]any)
	if several, ok := node["anyOf"].([]any); ok && len(several) > 0 {
		return real(several[0])
	}
	return node
}

// longText is the characters from which a text is worth growing on its own.
const longText = 4096

func placesOf(schema any, path string) (found []place) {
	node := real(schema)
	kind, _ := node["type"].(string)
	properties, _ := node["properties"].(map[string]any)
	switch {
	case kind == "array":
		found = append(found, place{path, node})
		found = append(found, placesOf(node["items"], path+"/0")...)
	case len(properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			found = append(found, placesOf(properties[name], path+"/"+name)...)
		}
		if node["additionalProperties"] != false {
			found = append(found, place{path, node})
		}
	case kind == "string":
		if node["enum"] == nil && atMost(node, "maxLength") >= longText {
			found = append(found, place{path, node})
		}
	case kind == "object" || kind == "":
		found = append(found, place{path, node})
	}
	return found
}

// atMost is a bound of a schema, or more than any body has.
func atMost(node map[string]any, name string) int {
	if n, ok := node[name].(float64); ok {
		return int(n)
	}
	return 1 << 20
}

// plants are the ways in which a place can grow.
func (p place) plants(room int) iter.Seq2[string, *plant] {
	return func(yield func(string, *plant) bool) {
		switch kind, _ := p.node["type"].(string); kind {
		case "string":
			for _, piece := range pieces {
				if !yield(strconv.Quote(piece), &plant{at: p.path, piece: piece, room: room}) {
					return
				}
			}
			return
		case "array":
			if !yield("small elements", &plant{at: p.path, room: room}) || !yield("equal elements", &plant{at: p.path, room: room, equal: true}) {
				return
			}
			for _, piece := range pieces {
				if !yield("elements of "+strconv.Quote(piece), &plant{at: p.path, piece: piece, room: room, equal: true}) {
					return
				}
			}
		default:
			for _, piece := range pieces {
				text := `"` + strings.Repeat(piece, room/len(piece)) + `"`
				if !yield("text of "+strconv.Quote(piece), &plant{at: p.path, value: `{"a":` + text + `}`}) ||
					!yield("texts of "+strconv.Quote(piece), &plant{at: p.path, value: many(piece, room)}) {
					return
				}
			}
		}
		for name, value := range freeValues(room) {
			if value[0] != '{' {
				value = `{"a":` + value + `}`
			}
			if !yield(name, &plant{at: p.path, value: value}) {
				return
			}
		}
	}
}

// many is an object of many texts of a piece.
func many(piece string, room int) string {
	var b strings.Builder
	for i := 0; b.Len() < room-200; i++ {
		fmt.Fprintf(&b, `,"m%d":"%s"`, i, strings.Repeat(piece, 80/len(piece)+1))
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// plant writes a body in which one place has grown.
type plant struct {
	at    string // the place
	value string // that stands there; empty: what the schema says, grown
	piece string // of the texts there
	room  int    // octets
	equal bool   // elements of a list are the same

	out    strings.Builder
	within bool // the grown place
	number int  // of the element that is being written
}

func (p *plant) body(schema, example any) string {
	p.out.Reset()
	p.write(schema, example, "")
	return p.out.String()
}

func (p *plant) write(schema, example any, path string) {
	node := real(schema)
	if path == p.at && p.value != "" {
		p.out.WriteString(p.value)
		return
	}
	kind, _ := node["type"].(string)
	properties, _ := node["properties"].(map[string]any)
	switch {
	case kind == "array" && path == p.at:
		p.growList(node, example, path)
	case kind == "array":
		p.writeList(node, example, path)
	case len(properties) > 0:
		p.writeObject(node, properties, example, path)
	case kind == "string":
		p.writeText(node, example, path)
	case example != nil:
		text, _ := json.Marshal(example, json.Deterministic(true))
		p.out.Write(text)
	case kind == "boolean":
		p.out.WriteString("true")
	case kind == "number" || kind == "integer":
		p.out.WriteString(strconv.FormatFloat(cmp.Or(numberOf(node["minimum"]), 1), 'f', -1, 64))
	default:
		p.out.WriteString("{}")
	}
}

func numberOf(v any) float64 {
	n, _ := v.(float64)
	return n
}

func (p *plant) writeObject(node, properties map[string]any, example any, path string) {
	given, _ := example.(map[string]any)
	required, _ := node["required"].([]any)
	p.out.WriteByte('{')
	first := true
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below := path + "/" + name
		onTheWay := p.at == below || strings.HasPrefix(p.at, below+"/")
		if value, has := given[name]; !onTheWay && !slices.Contains(required, any(name)) && (!has || value == nil) && !(p.within && given == nil) {
			continue
		}
		if !first {
			p.out.WriteByte(',')
		}
		first = false
		p.out.WriteString(strconv.Quote(name) + ":")
		p.write(properties[name], given[name], below)
	}
	p.out.WriteByte('}')
}

func (p *plant) writeList(node map[string]any, example any, path string) {
	given, _ := example.([]any)
	if len(given) == 0 && (strings.HasPrefix(p.at, path+"/") || numberOf(node["minItems"]) > 0 || p.within) {
		given = []any{nil}
	}
	p.out.WriteByte('[')
	for i, element := range given {
		if i > 0 {
			p.out.WriteByte(',')
		}
		below := path + "/0"
		if i > 0 {
			below = path + "/" + strconv.Itoa(i)
		}
		p.write(node["items"], element, below)
	}
	p.out.WriteByte(']')
}

// growList fills a list with elements like the example's, one after the other.
func (p *plant) growList(node map[string]any, example any, path string) {
	given, _ := example.([]any)
	if len(given) == 0 {
		given = []any{nil}
	}
	p.within = true
	p.out.WriteByte('[')
	start, elements := p.out.Len(), atMost(node, "maxItems")
	for p.number = 0; p.number < elements; p.number++ {
		before := p.out.Len()
		if p.number > 0 {
			p.out.WriteByte(',')
		}
		p.write(node["items"], given[p.number%len(given)], path+"/0")
		if size := p.out.Len() - before; p.out.Len()-start+size > p.room {
			break
		}
	}
	p.out.WriteByte(']')
	p.within = false
}

func (p *plant) writeText(node map[string]any, example any, path string) {
	text, _ := example.(string)
	options, _ := node["enum"].([]any)
	switch {
	case path == p.at:
		p.repeat(p.room, atMost(node, "maxLength"))
		return
	case len(options) > 0 && text == "":
		text, _ = options[0].(string)
	case p.within && p.piece != "" && len(options) == 0 && node["pattern"] == nil && node["format"] == nil:
		p.repeat(4000, atMost(node, "maxLength"))
		return
	case p.within && !p.equal && len(options) == 0 && node["pattern"] == nil && node["format"] == nil:
		text += strconv.Itoa(p.number)
	case text == "":
		text = strings.Repeat("a", int(max(1, numberOf(node["minLength"]))))
	}
	quoted, _ := jsontext.AppendQuote(nil, text)
	p.out.Write(quoted)
}

// repeat writes a text of pieces that has at most so many octets and characters.
func (p *plant) repeat(octets, characters int) {
	n := octets / len(p.piece)
	if each := len([]rune(p.piece)); p.piece[0] != '\\' {
		n = min(n, characters/each)
	} else {
		n = min(n, characters)
	}
	p.out.WriteString(`"` + strings.Repeat(p.piece, n) + `"`)
}
