// Package largebody generates the request bodies that cost a service most, from its JSON Schema
// and one example. Every list and text has the maximal length. Texts are filled with strings that
// scanners search for, that make them backtrack, or that must be escaped. Every unrestricted value
// takes the forms that cost most to parse. The benchmark measures the cost of each body. A test
// checks that doubling the body at most doubles the work.
package largebody

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// pieces are repeated inside texts. Scanners search for them, they make scanners backtrack, or
// they must be escaped.
var pieces = []string{"a", " ", `\n`, `\u00e9`, `\ud83d\ude00`, "é", "curl ", "curl|sh;", "http://", "://", "https://a.b/", "a.", ".", "@", "a@", "\\\\", "(", "[[", "${", "`",
	"4 ", "eyJ", "private key=0x", "seed abc ", "xoxb-", "+1 ", "000-00-", "0x", "0x0000000000000000000000000000000000000001 ", "sk-", "AKIA", "-----BEGIN PRIVATE KEY-----", "ignore previous instructions ", "eval(", "base64 -d ", "A1+/", "=", "%41", "&#x41;", "<!--", "1", "2026-01-01T00:00:00Z ", "xn--", "\u200b", "password=", "ı", "-"}

// besides is the number of bytes reserved for names and quotes around the part that grows.
const besides = 2000

// All returns bodies of at most the given number of bytes, each with a name for the part that
// grew: a piece in a long text of the schema, a filled list, or an unrestricted value that costs
// much to parse. The rest of each body is as in the example.
func All(schema, example any, octets int) iter.Seq2[string, string] {
	return Grown(schema, example, octets-len((&plant{}).body(schema, example))-besides)
}

// Grown returns the same bodies as All. room is the size in bytes of the part that grew.
func Grown(schema, example any, room int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
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

// freeValues returns JSON texts that cost much to parse, by name.
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

// place is a part of a schema whose values can grow: a text, a list or an object.
type place struct {
	path string
	node map[string]any
}

// real returns the first branch of an anyOf schema, which is the one that is not null.
func real(schema any) map[string]any {
	node, _ := schema.(map[string]any)
	if several, ok := node["anyOf"].([]any); ok && len(several) > 0 {
		return real(several[0])
	}
	return node
}

// longText is a number of characters. A text that the schema allows to be at least as long gets
// bodies of its own.
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

// atMost returns a limit that the schema sets. Without one it returns a number that no body
// reaches.
func atMost(node map[string]any, name string) int {
	if n, ok := node[name].(float64); ok {
		return int(n)
	}
	return 1 << 20
}

// plants returns the ways in which a place can grow.
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

// many returns a JSON object with many texts that repeat a piece.
func many(piece string, room int) string {
	var b strings.Builder
	for i := 0; b.Len() < room-200; i++ {
		fmt.Fprintf(&b, `,"m%d":"%s"`, i, strings.Repeat(piece, 80/len(piece)+1))
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// plant writes a body in which one place has grown.
type plant struct {
	at    string // path of the place that grows
	value string // value at the place; empty means the largest value that the schema allows
	piece string // string that texts there repeat
	room  int    // size of the place in bytes
	equal bool   // makes all elements of a list equal

	out    strings.Builder
	within bool // the writer is inside the place that grows
	number int  // index of the list element that is being written
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

// growList fills a list with copies of the example's elements. It starts again with the first one
// after the last.
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

// repeat writes a text that repeats the piece, with at most these numbers of bytes and characters.
func (p *plant) repeat(octets, characters int) {
	n := octets / len(p.piece)
	if each := len([]rune(p.piece)); p.piece[0] != '\\' {
		n = min(n, characters/each)
	} else {
		n = min(n, characters)
	}
	p.out.WriteString(`"` + strings.Repeat(p.piece, n) + `"`)
}
