package canon

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// worst contains the texts that are the most expensive for their length: nearly a megabyte of the
// same element. The benchmark measures them, and a test checks that their canonical form is that
// of the JSON library.
var worst = map[string]string{
	"escapes":           `["` + strings.Repeat(`\n`, 450_000) + `"]`,
	"escaped quotes":    `["` + strings.Repeat(`\"`, 450_000) + `"]`,
	"escapes by number": `["` + strings.Repeat(`\u200b`, 150_000) + `"]`,
	"surrogates":        `["` + strings.Repeat(`\ud83d\ude00`, 75_000) + `"]`,
	"integers":          list(400_000, func(int) string { return "1" }),
	"fractions":         list(200_000, func(i int) string { return fmt.Sprintf("1.%d", i%90+1) }),
	"exponents":         list(150_000, func(int) string { return "1e30" }),
	"objects":           list(300_000, func(int) string { return "{}" }),
	"strings":           list(300_000, func(int) string { return `""` }),
	"members":           list(12, func(int) string { return object(`"%d":1`) }),
	"members not ASCII": list(10, func(int) string { return object(`"é%d":1`) }),
	"depth":             list(2_300, func(int) string { return strings.Repeat(`{"a":`, 60) + "1.5" + strings.Repeat("}", 60) }),
}

func list(n int, item func(int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func object(member string) string {
	text := list(8_000, func(i int) string { return fmt.Sprintf(member, i*7919%8000) })
	return "{" + text[1:len(text)-1] + "}"
}

func TestTheWorstTextsHaveTheirCanonicalForm(t *testing.T) {
	for name, text := range worst {
		want := jsontext.Value(text)
		if err := want.Canonicalize(); err != nil {
			t.Fatal(name, err)
		}
		if got, err := Canonical([]byte(text)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: not the library's form, %v", name, err)
		}
	}
}

func BenchmarkCanonicalWorst(b *testing.B) {
	for name, text := range worst {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Canonical([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestNumbersHaveTheirCanonicalForm(t *testing.T) {
	numbers := []string{"0", "-0", "0.0", "-0.0", "1.0", "1.5", "-1.5", "0.1", "0.000001", "0.0000012", "0.0000001", "1e0", "1E5", "0.5e1", "10.10",
		"123456789012345", "1234567890.12345", "0.123456789012345", "0.1234567890123456", "9007199254740991", "1e21", "1e300", "-0.0000001"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		number := strconv.FormatFloat(random.NormFloat64(), 'f', random.IntN(18), 64)
		numbers = append(numbers, number, strconv.FormatFloat(random.ExpFloat64()*1e-5, 'f', 3+random.IntN(14), 64))
	}
	for _, number := range numbers {
		want := jsontext.Value("[" + number + "]")
		if err := want.Canonicalize(); err != nil {
			t.Fatal(number, err)
		}
		if got, err := Canonical([]byte("[" + number + "]")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s, %v, want %s", number, got, err, want)
		}
	}
}

func TestSkipTextFindsTheEndOfAString(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		text := make([]byte, 1+random.IntN(12))
		for i := range text {
			text[i] = `"\an`[random.IntN(4)]
		}
		text[0] = '"'
		want := len(text)
		for i := 1; i < len(text); i++ {
			if text[i] == '\\' {
				i++
			} else if text[i] == '"' {
				want = i + 1
				break
			}
		}
		if got := skipText(text, 0); got != want {
			t.Fatalf("%s: %d, want %d", text, got, want)
		}
	}
}
