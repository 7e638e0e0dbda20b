package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
)

// What a filter of MongoDB picks: every document, none, or some.

// mongoAll reports whether a filter picks every document.
func mongoAll(filter string) bool {
	filter = strings.TrimSpace(filter)
	if filter == "" || filter == "null" || filter == "undefined" {
		return true
	}
	root, _ := parseJSON(filter)
	return root != nil && root.end >= len(filter) && filterTruth(root, 0) == sql.AllRows
}

// filterTruth judges a filter as it stands in a tree; all its members must hold.
func filterTruth(n *jsonNode, depth int) sql.Truth {
	if n == nil || n.kind != '{' || depth > sql.MaxSQLNesting {
		return sql.SomeRows
	}
	result := sql.AllRows
	for i, k := range n.kids {
		switch memberTruth(n.keys[i], k, depth) {
		case sql.NoRows:
			return sql.NoRows
		case sql.SomeRows:
			result = sql.SomeRows
		}
	}
	return result
}

// memberTruth judges one member of a filter.
func memberTruth(key string, v *jsonNode, depth int) sql.Truth {
	switch key {
	case "$comment":
		return sql.AllRows
	case "$or", "$and", "$nor":
		return combined(key, v, depth)
	case "$where", "$expr":
		return constantText(v)
	case "_id", "id":
		return keyTruth(v)
	}
	return sql.SomeRows
}

// combined judges a list of filters under $or, $and and $nor.
func combined(key string, v *jsonNode, depth int) sql.Truth {
	all, none := true, true
	any := false
	for _, k := range v.kids {
		t := filterTruth(k, depth+1)
		all, none, any = all && t == sql.AllRows, none && t == sql.NoRows, any || t == sql.AllRows
	}
	switch {
	case len(v.kids) == 0:
		return sql.SomeRows
	case key == "$and" && all, key == "$or" && any, key == "$nor" && none:
		return sql.AllRows
	case key == "$nor" && any, key == "$or" && none:
		return sql.NoRows
	}
	return sql.SomeRows
}

// constantText judges $where and $expr: a condition that depends on no document.
func constantText(v *jsonNode) sql.Truth {
	if v.kind == '{' { // {$eq: [1, 1]}
		if pair := v.get("$eq", "$gte", "$lte"); pair != nil && len(pair.kids) == 2 && pair.kids[0].text == pair.kids[1].text && pair.kids[0].kind != '{' {
			return sql.AllRows
		}
		return sql.SomeRows
	}
	text := strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(v.text), ""), "return"), ";")
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "function(){return"), "()=>"), ";}")
	switch text {
	case "true", "1", "!0", "!false", "''==''":
		return sql.AllRows
	case "false", "0", "!1", "!true":
		return sql.NoRows
	}
	if left, right, ok := strings.Cut(text, "=="); ok && left != "" && left == strings.TrimPrefix(right, "=") {
		return sql.AllRows
	}
	return sql.SomeRows
}

// keyTruth judges what a filter asks of the key, which every document has.
func keyTruth(v *jsonNode) sql.Truth {
	if v.kind != '{' {
		return rowsNoneIf(v.text == "null" && v.kind == 'n')
	}
	if len(v.kids) != 1 {
		return sql.SomeRows
	}
	arg := v.kids[0]
	switch v.keys[0] {
	case "$exists":
		return sql.Rows(arg.text == "true" || arg.text == "1")
	case "$ne":
		return sql.RowsIf(slices.Contains([]string{"null", "", "0", "-1"}, arg.text) && arg.kind != '{')
	case "$nin":
		return sql.RowsIf(arg.kind == '[' && len(arg.kids) == 0)
	case "$in":
		return rowsNoneIf(arg.kind == '[' && len(arg.kids) == 0)
	case "$gt", "$gte":
		return sql.RowsIf(strings.HasPrefix(arg.text, "MinKey") || arg.text == "" || arg.text == "0")
	case "$lt", "$lte":
		return sql.RowsIf(strings.HasPrefix(arg.text, "MaxKey"))
	case "$regex":
		return sql.RowsIf(slices.Contains([]string{"", ".", ".*", "^", "/./", "/.*/", "/^/"}, arg.text))
	case "$not":
		if t := keyTruth(arg); t != sql.SomeRows {
			return sql.AllRows + sql.NoRows - t
		}
	}
	return sql.SomeRows
}

// rowsNoneIf is noRows or, if the test may pick rows, someRows.
func rowsNoneIf(none bool) sql.Truth {
	if none {
		return sql.NoRows
	}
	return sql.SomeRows
}

// pipelineEffect is what an aggregation does to the collection it writes.
func pipelineEffect(c *mongoCall) string {
	root, _ := parseJSON(strings.TrimSpace(c.args))
	if !strings.Contains(c.args, "$out") {
		return ""
	}
	if root == nil || root.kind != '[' {
		return "replace"
	}
	narrowed, effect := false, "replace"
	for _, stage := range root.kids {
		if m := stage.get("$match"); m != nil {
			narrowed = true
			if filterTruth(m, 0) == sql.NoRows {
				effect = "nosql.collection-drop" // what is left is empty
			}
		}
		if stage.get("$limit", "$sample", "$skip") != nil {
			narrowed = true
			if stage.str("$limit") == "0" {
				effect = "nosql.collection-drop"
			}
		}
		if out := stage.str("$out"); out != "" && narrowed && strings.HasSuffix(c.receiver, "."+out) {
			effect = "nosql.collection-drop" // a collection is written over by a part of itself
		}
	}
	return effect
}

// bulkEffect is the worst that a list of writes does.
func bulkEffect(args string) string {
	plain := strings.NewReplacer(`"`, "", "'", "").Replace(strings.Join(strings.Fields(args), ""))
	switch {
	case strings.Contains(plain, "deleteMany:{filter:{}"):
		return "nosql.delete-all"
	case strings.Contains(plain, "updateMany:{filter:{}"):
		return "update.unbounded"
	}
	return "update.scoped"
}
