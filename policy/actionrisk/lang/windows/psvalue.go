package windows

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// psKind is what a value of PowerShell is, as far as it matters here.
type psKind uint8

const (
	psText   psKind = iota // text, with a hole for each unknown part; numbers too
	psList                 // an array
	psHash                 // a hash table
	psBlock                // a script block
	psType                 // a type: [io.file]
	psObject               // anything else, named by its type or by the command that gives it
)

// psValue is a value of the evaluator. The zero value is the empty text.
type psValue struct {
	kind     psKind
	text     string      // of a text; name of a type or an object, in lower case
	number   bool        // a text that is a number
	items    []psValue   // of a list; values of a hash table
	keys     []string    // of a hash table, in lower case
	block    *act.Source // a script block's text is in block.text[from:to]
	from, to int
	taint    act.Taint
	output   bool // of a command whose output is not known
}

func psString(s string) psValue        { return psValue{text: s} }
func psNumber(n int) psValue           { return psValue{text: strconv.Itoa(n), number: true} }
func psListOf(items []psValue) psValue { return psValue{kind: psList, items: items} }

// psUnknown is an unknown value with its origin.
func psUnknown(t act.Taint) psValue { return psValue{text: string(scan.Hole), taint: t} }

// psThing is an object of that type, or the output of that command.
func psThing(name string, t act.Taint) psValue { return psValue{kind: psObject, text: name, taint: t} }

// str is the text that a value becomes where text is wanted.
func (v psValue) str() string {
	switch v.kind {
	case psText:
		return v.text
	case psList:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = item.str()
		}
		return strings.Join(parts, " ")
	case psBlock:
		return v.block.Text[v.from:v.to]
	case psType:
		return v.text
	}
	return string(scan.Hole)
}

func (v psValue) known() bool { return strings.IndexByte(v.str(), scan.Hole) < 0 }

// taints is where any part of the value came from.
func (v psValue) taints() act.Taint {
	t := v.taint
	for i := range v.items {
		t |= v.items[i].taint
	}
	return t
}

// list is what a loop over the value goes through.
func (v psValue) list() []psValue {
	if v.kind == psList {
		return v.items
	}
	if v.kind == psText && v.text == "" {
		return nil
	}
	return []psValue{v}
}

// texts are the words that a value becomes as an argument of a program.
func (v psValue) texts() []string {
	var out []string
	for _, item := range v.list() {
		if item.kind == psList {
			out = append(out, item.texts()...)
		} else {
			out = append(out, item.str())
		}
	}
	return out
}

// member of a hash table.
func (v psValue) member(key string) (psValue, bool) {
	for i, k := range v.keys {
		if k == key {
			return v.items[i], true
		}
	}
	return psValue{}, false
}

// int of a number in any of its spellings.
func (v psValue) int() (int, bool) {
	t := strings.ToLower(strings.TrimSpace(v.str()))
	n, err := strconv.ParseInt(t, 0, 64)
	if err != nil && len(t) > 1 && strings.Trim(t, "0123456789") == "" { // 08 is no octal number here
		n, err = strconv.ParseInt(t, 10, 64)
	}
	return int(n), err == nil
}

// collect makes one value of what several statements give.
func collect(out []psValue) psValue {
	switch len(out) {
	case 0:
		return psValue{}
	case 1:
		return out[0]
	}
	return psListOf(out)
}

// char is [char]n.
func char(v psValue) psValue {
	if n, ok := v.int(); ok && n > 0 && n < 0x110000 && (v.number || len(v.text) > 1) {
		return psValue{text: string(rune(n)), taint: v.taint}
	}
	return v
}

// cast is [type]value.
func cast(name string, v psValue) psValue {
	name = strings.TrimPrefix(name, "system.")
	switch {
	case name == "char":
		return char(v)
	case name == "char[]":
		if v.kind == psText && !v.number {
			return characters(v)
		}
		out := make([]psValue, 0, len(v.list()))
		for _, item := range v.list() {
			out = append(out, char(item))
		}
		return psListOf(out)
	case name == "string":
		return psValue{text: v.str(), taint: v.taints()}
	case numberTypes.Has(name):
		return number(v)
	case plainTypes.Has(name) || v.kind != psText && v.kind != psHash:
		return v
	case name == "type":
		return psValue{kind: psType, text: strings.ToLower(v.str())}
	}
	return psValue{kind: psObject, text: name + ":" + strings.ToLower(v.str()), taint: v.taints()} // [adsi]'LDAP://…', [wmiclass]'Win32_Process', [xml](…)
}

// numberTypes make a number of a value, plainTypes leave it what it is.
var (
	numberTypes = scan.SetOf("int int32 int64 long byte uint32 double decimal convert")
	plainTypes  = scan.SetOf("scriptblock string[] array void object psobject hashtable ordered pscustomobject byte[] int[] object[] bool switch regex securestring")
)

// number is [int]v, of a character its code.
func number(v psValue) psValue {
	if r := []rune(v.text); v.kind == psText && !v.number && len(r) == 1 && (r[0] < '0' || r[0] > '9') {
		return psNumber(int(r[0]))
	}
	v.number = v.kind == psText && v.known()
	return v
}

// characters of a text.
func characters(v psValue) psValue {
	var out []psValue
	for _, r := range v.text {
		if len(out) >= scan.MaxDecoded {
			break
		}
		out = append(out, psValue{text: string(r), taint: v.taint})
	}
	return psListOf(out)
}

// psAdd is a + b.
func psAdd(a, b psValue) psValue {
	if a.kind == psList {
		return psListOf(append(append([]psValue(nil), a.items...), b.list()...))
	}
	if a.number && b.number {
		return psArithmetic("+", a, b)
	}
	text, t := a.str()+b.str(), a.taints()|b.taints()
	if len(text) > scan.MaxDecoded {
		return psUnknown(t)
	}
	return psValue{text: text, taint: t}
}

// arithmetic are the operators on two numbers.
var arithmetic = map[string]func(x, y int) int{
	"+": func(x, y int) int { return x + y }, "-": func(x, y int) int { return x - y }, "*": func(x, y int) int { return x * y },
	"/": func(x, y int) int { return x / max(y, 1) }, "%": func(x, y int) int { return x % max(y, 1) },
	"-bxor": func(x, y int) int { return x ^ y }, "-band": func(x, y int) int { return x & y }, "-bor": func(x, y int) int { return x | y },
}

// psArithmetic of two numbers.
func psArithmetic(op string, a, b psValue) psValue {
	x, ok1 := a.int()
	y, ok2 := b.int()
	if !ok1 || !ok2 {
		return psUnknown(a.taints() | b.taints())
	}
	return psNumber(arithmetic[op](x, y))
}

// psRange is a..b.
func psRange(a, b psValue) psValue {
	x, ok1 := a.int()
	y, ok2 := b.int()
	if !ok1 || !ok2 || x-y > scan.MaxRange || y-x > scan.MaxRange {
		return psUnknown(0)
	}
	step := 1
	if y < x {
		step = -1
	}
	out := []psValue{psNumber(x)}
	for x != y {
		x += step
		out = append(out, psNumber(x))
	}
	return psListOf(out)
}

// psIndex is value[index].
func psIndex(v, index psValue) psValue {
	if v.kind == psHash {
		if m, ok := v.member(strings.ToLower(index.str())); ok {
			return m
		}
		return psUnknown(v.taints())
	}
	if v.kind == psObject || !v.known() {
		return psValue{kind: v.kind, text: v.text, taint: v.taint, output: v.output}
	}
	from := v.items
	if v.kind == psText {
		from = characters(v).items
	}
	var out []psValue
	for _, one := range index.list() {
		n, ok := one.int()
		if !ok {
			return psUnknown(v.taints())
		}
		if n < 0 {
			n += len(from)
		}
		if n >= 0 && n < len(from) {
			out = append(out, from[n])
		}
	}
	if index.kind != psList {
		return collect(out)
	}
	return psListOf(out)
}

// psSplit is text -split pattern.
func psSplit(text psValue, args psValue, literal bool) psValue {
	sep := " "
	if list := args.list(); len(list) > 0 {
		sep = list[0].str()
	}
	if !literal && (sep == `\s+` || sep == `\s` || sep == " ") {
		return stringsOf(strings.Fields(text.str()), text.taints())
	}
	if !text.known() || !literal && !scan.PlainPattern(sep) || sep == "" {
		return psListOf([]psValue{psUnknown(text.taints())})
	}
	if !literal {
		sep = strings.ReplaceAll(sep, `\`, "")
	}
	return stringsOf(strings.Split(text.str(), sep), text.taints())
}

func stringsOf(list []string, t act.Taint) psValue {
	out := make([]psValue, len(list))
	for i, s := range list {
		out[i] = psValue{text: s, taint: t}
	}
	return psListOf(out)
}

// isBlock: a script block, or what was made one at run time.
func (v psValue) isBlock() bool {
	return v.kind == psBlock || v.kind == psObject && v.text == "scriptblock"
}

// length is how many characters or elements there are.
func (v psValue) length() int {
	if v.kind == psText && v.known() {
		return len(v.text)
	}
	return len(v.list())
}
