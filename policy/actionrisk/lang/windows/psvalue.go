package windows

import (
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// psKind is the kind of a PowerShell value, as far as the evaluator distinguishes kinds.
type psKind uint8

const (
	psText   psKind = iota // a text or number; each unknown part is one byte, scan.Hole
	psList                 // an array
	psHash                 // a hash table
	psBlock                // a script block
	psType                 // a type: [io.file]
	psObject               // any other object, named by its type or by the command that returned it
)

// psValue is a value of the evaluator. The zero value is the empty text.
type psValue struct {
	kind     psKind
	text     string      // the text; for a type or an object its name in lower case
	number   bool        // the text is a number
	items    []psValue   // elements of a list, or values of a hash table
	keys     []string    // keys of a hash table, in lower case
	block    *act.Source // the code of a script block is block.Text[from:to]
	from, to int
	taint    act.Taint
	output   bool // the value is the unknown output of a command
}

func psString(s string) psValue        { return psValue{text: s} }
func psNumber(n int) psValue           { return psValue{text: strconv.Itoa(n), number: true} }
func psListOf(items []psValue) psValue { return psValue{kind: psList, items: items} }

// psUnknown returns an unknown text with this taint.
func psUnknown(t act.Taint) psValue { return psValue{text: string(scan.Hole), taint: t} }

// psThing returns an object that is named by its type or by the command that returned it.
func psThing(name string, t act.Taint) psValue { return psValue{kind: psObject, text: name, taint: t} }

// str returns the value converted to a text.
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

// taints returns the taints of the value and of its elements.
func (v psValue) taints() act.Taint {
	t := v.taint
	for i := range v.items {
		t |= v.items[i].taint
	}
	return t
}

// list returns the elements over which a loop iterates: those of a list, or the value itself.
func (v psValue) list() []psValue {
	if v.kind == psList {
		return v.items
	}
	if v.kind == psText && v.text == "" {
		return nil
	}
	return []psValue{v}
}

// texts returns the words that a program receives if the value is its argument.
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

// member returns a member of a hash table or object.
func (v psValue) member(key string) (psValue, bool) {
	for i, k := range v.keys {
		if k == key {
			return v.items[i], true
		}
	}
	return psValue{}, false
}

// int returns the value as an integer. It accepts decimal, hexadecimal and octal numbers.
func (v psValue) int() (int, bool) {
	t := strings.ToLower(strings.TrimSpace(v.str()))
	n, err := strconv.ParseInt(t, 0, 64)
	if err != nil && len(t) > 1 && strings.Trim(t, "0123456789") == "" { // 08 is a decimal number in PowerShell
		n, err = strconv.ParseInt(t, 10, 64)
	}
	return int(n), err == nil
}

// collect returns the outputs of several statements as one value.
func collect(out []psValue) psValue {
	switch len(out) {
	case 0:
		return psValue{}
	case 1:
		return out[0]
	}
	return psListOf(out)
}

// char evaluates [char]v.
func char(v psValue) psValue {
	if n, ok := v.int(); ok && n > 0 && n < 0x110000 && (v.number || len(v.text) > 1) {
		return psValue{text: string(rune(n)), taint: v.taint}
	}
	return v
}

// cast evaluates [name]v.
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
	return psValue{kind: psObject, text: name + ":" + strings.ToLower(v.str()), taint: v.taints()} // for example [adsi]'LDAP://…', [wmiclass]'Win32_Process', [xml](…)
}

// numberTypes lists types that convert a value to a number. plainTypes lists types that do not
// change the value.
var (
	numberTypes = scan.SetOf("int int32 int64 long byte uint32 double decimal convert")
	plainTypes  = scan.SetOf("scriptblock string[] array void object psobject hashtable ordered pscustomobject byte[] int[] object[] bool switch regex securestring")
)

// number evaluates [int]v. The number of a character is its code.
func number(v psValue) psValue {
	if r := []rune(v.text); v.kind == psText && !v.number && len(r) == 1 && (r[0] < '0' || r[0] > '9') {
		return psNumber(int(r[0]))
	}
	v.number = v.kind == psText && v.known()
	return v
}

// characters returns the characters of a text as a list.
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

// psAdd evaluates a + b.
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

// arithmetic maps operators to functions of two numbers.
var arithmetic = map[string]func(x, y int) int{
	"+": func(x, y int) int { return x + y }, "-": func(x, y int) int { return x - y }, "*": func(x, y int) int { return x * y },
	"/": func(x, y int) int { return x / max(y, 1) }, "%": func(x, y int) int { return x % max(y, 1) },
	"-bxor": func(x, y int) int { return x ^ y }, "-band": func(x, y int) int { return x & y }, "-bor": func(x, y int) int { return x | y },
}

// psArithmetic evaluates "a op b" for two numbers. The result is unknown for other values.
func psArithmetic(op string, a, b psValue) psValue {
	x, ok1 := a.int()
	y, ok2 := b.int()
	if !ok1 || !ok2 {
		return psUnknown(a.taints() | b.taints())
	}
	return psNumber(arithmetic[op](x, y))
}

// psRange evaluates a..b.
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

// psIndex evaluates v[index].
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

// psSplit evaluates text -split pattern. If literal is true, it splits at the text itself and not
// at a regular expression.
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

// isBlock reports whether the value is a script block, or an unknown one that was created at run
// time.
func (v psValue) isBlock() bool {
	return v.kind == psBlock || v.kind == psObject && v.text == "scriptblock"
}

// length returns the number of characters or elements.
func (v psValue) length() int {
	if v.kind == psText && v.known() {
		return len(v.text)
	}
	return len(v.list())
}
