package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A guard reads 700 KB of tables at each tool call of an agent, and a decoder for any
// JSON took half of its time. The tables are ours and known to be strict JSON, so this
// one looks for nothing but a table that does not have the shape of its type: a text
// without escapes is a part of the table, a list is made once it is known how long it
// is, and fields are found by a name that was looked up once.

// decode reads one table into what into points at.
func decode(text string, into any) error {
	d := decoder{text: text, shapes: map[reflect.Type]map[string]int{}, rooms: map[reflect.Type]reflect.Value{}}
	if err := d.value(reflect.ValueOf(into).Elem()); err != nil {
		return fmt.Errorf("byte %d: %w", d.at, err)
	}
	if d.next() != 0 {
		return fmt.Errorf("byte %d: something follows the table", d.at)
	}
	return nil
}

// texts is the type of the lists that tables are mostly made of; roomFor and many are
// how many texts and other elements of lists lie in one piece.
var texts = reflect.TypeFor[[]string]()

const roomFor, many = 512, 32

// decoder is a table and how far it is read.
type decoder struct {
	text   string
	at     int
	shapes map[reflect.Type]map[string]int // the fields of a type by their names
	texts  []string                        // of the list that is being read
	room   []string                        // where lists of texts are put, many in one piece
	rooms  map[reflect.Type]reflect.Value  // where other lists are put, by their elements
}

var errTable = errors.New("this is not what the type of the table says")

// next is the first byte behind white space; it stays.
func (d *decoder) next() byte {
	for ; d.at < len(d.text); d.at++ {
		if c := d.text[d.at]; c > ' ' {
			return c
		}
	}
	return 0
}

// take takes one byte that must stand here.
func (d *decoder) take(c byte) error {
	if d.next() != c {
		return errTable
	}
	d.at++
	return nil
}

// more tells whether another element stands before the closing bracket, and takes the
// comma before it or the bracket; first: no element stands before it.
func (d *decoder) more(first bool, closing byte) (bool, error) {
	switch c := d.next(); {
	case c == closing:
		d.at++
		return false, nil
	case first:
		return true, nil
	}
	return true, d.take(',')
}

// value reads a value of any kind that tables hold.
func (d *decoder) value(into reflect.Value) error {
	switch into.Kind() {
	case reflect.String:
		text, err := d.string()
		into.SetString(text)
		return err
	case reflect.Struct:
		return d.object(into)
	case reflect.Slice:
		if into.Type() == texts {
			return d.list(into)
		}
		return d.slice(into)
	case reflect.Map:
		return d.mapping(into)
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.value(into.Elem())
	}
	return d.scalar(into)
}

// scalar reads a number without a fraction, or a truth.
func (d *decoder) scalar(into reflect.Value) error {
	d.next()
	from := d.at
	for d.at < len(d.text) && strings.IndexByte(",]} \n", d.text[d.at]) < 0 {
		d.at++
	}
	text := d.text[from:d.at]
	if into.Kind() == reflect.Bool {
		into.SetBool(text == "true")
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !into.CanInt() {
		return errTable
	}
	into.SetInt(n)
	return nil
}

// string reads a text, which is a part of the table unless something in it is escaped.
func (d *decoder) string() (string, error) {
	if err := d.take('"'); err != nil {
		return "", err
	}
	rest := d.text[d.at:]
	end := strings.IndexByte(rest, '"')
	if end < 0 {
		return "", errTable
	}
	if strings.IndexByte(rest[:end], '\\') < 0 {
		d.at += end + 1
		return rest[:end], nil
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			d.at += i + 1
			return unescape(`"` + rest[:i+1])
		}
	}
	return "", errTable
}

// unescape reads a quoted text. Go writes nearly all of them as JSON does.
func unescape(quoted string) (string, error) {
	if text, err := strconv.Unquote(quoted); err == nil {
		return text, nil
	}
	var text string
	err := json.Unmarshal([]byte(quoted), &text)
	return text, err
}

// list reads a list of texts.
func (d *decoder) list(into reflect.Value) error {
	if err := d.take('['); err != nil {
		return err
	}
	d.texts = d.texts[:0]
	for {
		more, err := d.more(len(d.texts) == 0, ']')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		text, err := d.string()
		if err != nil {
			return err
		}
		d.texts = append(d.texts, text)
	}
	n := len(d.texts)
	if n > len(d.room) {
		d.room = make([]string, max(n, roomFor))
	}
	copy(d.room, d.texts)
	*into.Addr().Interface().(*[]string) = d.room[:n:n]
	d.room = d.room[n:]
	return nil
}

// slice reads a list of anything else. Its elements are read into room that is left from
// the list before, so that the list is as long as it has to be.
func (d *decoder) slice(into reflect.Value) error {
	if err := d.take('['); err != nil {
		return err
	}
	element := into.Type().Elem()
	room := d.rooms[element]
	delete(d.rooms, element) // a list of the same within it has room of its own
	from := d.at
	n := 0
	for ; ; n++ {
		more, err := d.more(n == 0, ']')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if !room.IsValid() || n == room.Len() {
			more := many
			if n >= many { // a list so long is most of the table: the rest holds as many for its length
				more = 1 + (len(d.text)-d.at)/((d.at-from)/n)
			}
			larger := reflect.MakeSlice(into.Type(), n+more, n+more)
			if n > 0 {
				reflect.Copy(larger, room)
			}
			room = larger
		}
		if err := d.value(room.Index(n)); err != nil {
			return err
		}
	}
	if n > 0 {
		into.Set(room.Slice3(0, n, n))
		d.rooms[element] = room.Slice(n, room.Len())
	}
	return nil
}

// object reads the fields of a struct.
func (d *decoder) object(into reflect.Value) error {
	shape := d.shape(into.Type())
	return d.members(func(name string) error {
		field, ok := shape[name]
		if !ok {
			return fmt.Errorf("unknown member %q", name)
		}
		return d.value(into.Field(field))
	})
}

// mapping reads an object whose names are data.
func (d *decoder) mapping(into reflect.Value) error {
	into.Set(reflect.MakeMap(into.Type()))
	return d.members(func(name string) error {
		value := reflect.New(into.Type().Elem()).Elem()
		err := d.value(value)
		into.SetMapIndex(reflect.ValueOf(name), value)
		return err
	})
}

// members reads an object, each value by a function that is told its name.
func (d *decoder) members(value func(name string) error) error {
	if err := d.take('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.more(first, '}')
		if err != nil || !more {
			return err
		}
		name, err := d.string()
		if err != nil {
			return err
		}
		if err := d.take(':'); err != nil {
			return err
		}
		if err := value(name); err != nil {
			return err
		}
	}
}

// shape gives the fields of a struct by the names that its tags say.
func (d *decoder) shape(t reflect.Type) map[string]int {
	shape, ok := d.shapes[t]
	if !ok {
		shape = map[string]int{}
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
				shape[name] = i
			}
		}
		d.shapes[t] = shape
	}
	return shape
}

// Rows are the elements of the list that is all of a table, as texts, and the texts of the
// list that each begins with: what a row is about. A guard needs few of them, so the rest
// stays as it is.
func Rows(name, member, first string) (rows []string, about [][]string, err error) {
	d := &decoder{text: Tables()[name]}
	begin := d.take('{')
	if got, err := d.string(); err != nil || got != member || begin != nil || d.take(':') != nil || d.take('[') != nil {
		return nil, nil, errTable
	}
	for more, err := d.more(true, ']'); ; more, err = d.more(false, ']') {
		if err != nil {
			return nil, nil, err
		}
		if !more {
			return rows, about, nil
		}
		d.next()
		from := d.at
		if err := d.take('{'); err != nil {
			return nil, nil, err
		}
		if got, err := d.string(); err != nil || got != first || d.take(':') != nil {
			return nil, nil, errTable
		}
		var names []string
		if err := d.list(reflect.ValueOf(&names).Elem()); err != nil {
			return nil, nil, err
		}
		d.skip(1)
		rows, about = append(rows, d.text[from:d.at]), append(about, names)
	}
}

// skip goes behind the bracket that ends what is open so deep.
func (d *decoder) skip(depth int) {
	for depth > 0 && d.at < len(d.text) {
		switch c := d.text[d.at]; c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for d.at++; d.at < len(d.text) && d.text[d.at] != '"'; d.at++ {
				if d.text[d.at] == '\\' {
					d.at++
				}
			}
		}
		d.at++
	}
}

// DecodeRow decodes one row of a table.
func DecodeRow(text string, into any) error { return decode(text, into) }
