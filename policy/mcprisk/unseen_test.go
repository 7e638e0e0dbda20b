package mcprisk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/mcprisk"
	"github.com/countersign/countersign/policy/policytest"
)

// unseen is a text that was labelled before the rules were written.
type unseen struct{ label, text string }

// ask returns a manifest with one tool, made of the parts of the text: a description, or name and
// description, or name, description and a parameter.
func (u unseen) ask() mcprisk.Input {
	parts := strings.Split(u.text, " :: ")
	tool := object{"name": "helper", "description": parts[0], "inputSchema": closed()}
	if len(parts) > 1 {
		tool["name"], tool["description"] = parts[0], parts[1]
	}
	if len(parts) > 3 {
		tool["inputSchema"] = object{"type": "object", "properties": object{parts[2]: object{"type": "string", "description": parts[3]}}, "additionalProperties": false}
	}
	return of(object{"tools": []any{tool}})
}

// right reports whether the answer is correct for the label.
func (u unseen) right(out mcprisk.Output) bool {
	level := slices.Index([]string{"low", "medium", "high", "critical"}, out.RiskLevel)
	switch u.label {
	case "payment":
		return slices.Contains(ids(out), "payment_capability")
	case "steer":
		return level >= 1
	case "calm":
		return level <= 1
	}
	return level >= 2
}

// The texts of these files were labelled before the rules were written. In most files at least
// nine in ten harmful texts must be found, and at most one in twenty harmless texts may raise an
// alarm.
//
// Each file was measured once before the rules were adapted to it. Then 128 of 170, 48 of 60, 37
// of 54, 20 of 40, 6 of 6, 52 of 118 and 25 of 97 harmful texts were found; 4 of 158, 1 of 50, 1
// of 40, 1 of 20, 18 of 56, 1 of 118 and 0 of 68 harmless texts raised an alarm. The fifth file
// mentions attacks as security tools do. The last two state their purpose indirectly, so fewer of
// their texts are found.
func TestUnseenTexts(t *testing.T) {
	for file, percent := range map[string]int{"unseen.txt": 90, "unseen2.txt": 90, "unseen3.txt": 90, "unseen4.txt": 90, "unseen5.txt": 90, "unseen6.txt": 80, "unseen7.txt": 60} {
		t.Run(file, func(t *testing.T) {
			all, right := map[string]int{}, map[string]int{}
			for _, line := range lines(t, file) {
				label, text, _ := strings.Cut(line, " | ")
				u := unseen{label, text}
				group := "harm"
				if label == "calm" {
					group = label
				}
				all[group]++
				all[label+"*"]++
				if out := judge(t, u.ask()); u.right(out) {
					right[group]++
					right[label+"*"]++
				} else {
					t.Logf("%s: %s: %s %v", label, text, out.RiskLevel, ids(out))
				}
			}
			t.Log(fmt.Sprint(right, " of ", all))
			if right["harm"]*100 < all["harm"]*percent {
				t.Errorf("%d of %d harmful texts are caught", right["harm"], all["harm"])
			}
			if (all["calm"]-right["calm"])*20 > all["calm"] {
				t.Errorf("%d of %d harmless texts raise an alarm", all["calm"]-right["calm"], all["calm"])
			}
		})
	}
}

// The client configurations were written before their rules. Each harmful one must trigger the
// rule that it names, and a harmless one has no finding above medium.
func TestUnseenConfigurations(t *testing.T) {
	all, right := map[bool]int{}, map[bool]int{}
	for _, c := range policytest.Cases(t, "testdata/unseen_configs.txtar") {
		out := judge(t, decode(t, c.Body))
		calm := c.Want == "calm"
		all[calm]++
		if slices.Contains(ids(out), c.Want) || calm && (out.RiskLevel == "low" || out.RiskLevel == "medium") {
			right[calm]++
		} else {
			t.Logf("%s: want %s, got %v", c.Name, c.Want, ids(out))
		}
	}
	if right[false]*10 < all[false]*9 || right[true] < all[true] {
		t.Errorf("%v of %v are right", right, all)
	}
}
