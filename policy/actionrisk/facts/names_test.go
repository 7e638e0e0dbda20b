package facts

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// TestNamesThatNothingDoes: a row says in known words what its names do, in a list that
// is asked.
func TestNamesThatNothingDoes(t *testing.T) {
	for table, read := range map[string]bool{
		`{"calls":[{"names":["rm"],"does":"tree"}]}`:             true,
		`{"calls":[{"names":["rm"],"does":"trees"}]}`:            false,
		`{"calls":[{"names":["rm"]}]}`:                           false,
		`{"receivers":[{"names":["rm"]}]}`:                       false,
		`{"values":[{"names":["HOME"],"text":"~"}]}`:             true,
		`{"values":[{"names":["HOME"],"does":"home"}]}`:          false,
		`{"libraries":[{"names":["up"],"run":["pulumi","up"]}]}`: true,
		`{"libraries":[{"names":["up"],"does":"up"}]}`:           false,
		`{"libraries":[{"names":["up"],"import":["pulumi"]}]}`:   false,
		`{"callers":[{"names":["rm"],"does":"tree"}]}`:           false,
	} {
		_, err := readNames(func(_ string, into any) error { return json.Unmarshal([]byte(table), into) })
		if (err == nil) != read {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// TestNamesOfEarlierRulesets: each earlier rule set is read with the names that its own
// tables list, in their order. The calls that stood in the program then follow its own.
func TestNamesOfEarlierRulesets(t *testing.T) {
	for _, version := range rules.PastVersions() {
		tables, err := rules.PastTables(version)
		if err != nil {
			t.Fatal(err)
		}
		if tables["names"] != nil {
			continue // it is read as it is
		}
		read, err := rules.Past(version)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string][]Name
		if err := read("names", &got); err != nil {
			t.Fatal(err)
		}
		want := listed(t, tables["code"], tables["sdk"])
		got[AsCall] = got[AsCall][:min(len(want[AsCall]), len(got[AsCall]))]
		got[AsEnvironment] = []Name{{Names: dottedNames(got[AsEnvironment])}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
}

// listed are the lists of code.json and sdk.json as rows of names.json.
func listed(t *testing.T, code, sdk json.RawMessage) map[string][]Name {
	var lists map[string]json.RawMessage // each of rows, or of names
	var libraries struct {
		SDKs []struct {
			Import, Call, With []string
			Run                string
			Text               bool
		}
	}
	if err := errors.Join(json.Unmarshal(code, &lists), json.Unmarshal(sdk, &libraries)); err != nil {
		t.Fatal(err)
	}
	delete(lists, "languages")
	out := map[string][]Name{}
	for list, text := range lists {
		var names []string
		var rows []Name
		if json.Unmarshal(text, &names) == nil {
			rows = []Name{{Names: names}}
		} else if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(err)
		}
		out[list] = rows
	}
	slices.Sort(out[AsEnvironment][0].Names) // of which each is looked up whole
	for _, c := range libraries.SDKs {
		row := Name{Names: c.Call, Import: c.Import, With: c.With}
		if c.Text {
			row.Does = RunsText
		}
		if c.Run != "" {
			row.Run = strings.Fields(c.Run)
		}
		out[AsLibrary] = append(out[AsLibrary], row)
	}
	return out
}

// dottedNames are the names of rows with what they are on, sorted.
func dottedNames(rows []Name) []string {
	names := map[string]bool{}
	for _, row := range rows {
		for _, on := range row.On {
			for _, name := range row.Names {
				names[strings.TrimPrefix(on+"."+name, "-.")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
