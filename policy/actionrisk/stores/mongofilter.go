package stores

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// What a filter of MongoDB picks: every document, none, or some.

// MongoAll reports whether a filter picks every document.
func MongoAll(filter string) bool {
	filter = strings.TrimSpace(filter)
	if filter == "" || filter == "null" || filter == "undefined" {
		return true
	}
	root, _ := tree.JSON(filter)
	return root != nil && root.End >= len(filter) && filterTruth(root, 0) == sql.AllRows
}

// filterTruth judges a filter as it is in a tree; all its members must hold.
func filterTruth(n *tree.Node, depth int) sql.Truth {
	if n == nil || n.Kind != '{' || depth > sql.MaxSQLNesting {
		return sql.SomeRows
	}
	result := sql.AllRows
	for i, k := range n.Kids {
		switch memberTruth(n.Keys[i], k, depth) {
		case sql.NoRows:
			return sql.NoRows
		case sql.SomeRows:
			result = sql.SomeRows
		}
	}
	return result
}

// memberTruth judges one member of a filter.
func memberTruth(key string, v *tree.Node, depth int) sql.Truth {
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
func combined(key string, v *tree.Node, depth int) sql.Truth {
	count := map[sql.Truth]int{}
	for _, k := range v.Kids {
		count[filterTruth(k, depth+1)]++
	}
	all, none := count[sql.AllRows], count[sql.NoRows]
	switch n := len(v.Kids); {
	case n == 0:
		return sql.SomeRows
	case key == "$and" && all == n, key == "$or" && all > 0, key == "$nor" && none == n:
		return sql.AllRows
	case key == "$nor" && all > 0, key == "$or" && none == n:
		return sql.NoRows
	}
	return sql.SomeRows
}

// keyHolds are the values with which a test of the key leaves no document out.
var keyHolds = map[string][]string{"$ne": {"null", "", "0", "-1"}, "$gt": {"", "0"}, "$gte": {"", "0"}, "$regex": {"", ".", ".*", "^", "/./", "/.*/", "/^/"}}

// constantText judges $where and $expr: a condition that depends on no document.
func constantText(v *tree.Node) sql.Truth {
	if v.Kind == '{' { // {$eq: [1, 1]}
		if pair := v.Get("$eq", "$gte", "$lte"); pair != nil && len(pair.Kids) == 2 && pair.Kids[0].Text == pair.Kids[1].Text && pair.Kids[0].Kind != '{' {
			return sql.AllRows
		}
		return sql.SomeRows
	}
	text := strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(v.Text), ""), "return"), ";")
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
func keyTruth(v *tree.Node) sql.Truth {
	if v.Kind != '{' {
		return rowsNoneIf(v.Kind == 'n')
	}
	if len(v.Kids) != 1 {
		return sql.SomeRows
	}
	op, arg := v.Keys[0], v.Kids[0]
	empty := arg.Kind == '[' && len(arg.Kids) == 0
	switch op {
	case "$exists":
		return sql.Rows(slices.Contains([]string{"true", "1"}, arg.Text))
	case "$nin":
		return sql.RowsIf(empty)
	case "$in":
		return rowsNoneIf(empty)
	case "$not":
		return keyTruth(arg).Not()
	case "$ne":
		if arg.Kind == '{' {
			return sql.SomeRows
		}
	}
	bound := map[string]string{"$gt": "MinKey", "$gte": "MinKey", "$lt": "MaxKey", "$lte": "MaxKey"}[op]
	return sql.RowsIf(slices.Contains(keyHolds[op], arg.Text) || bound != "" && strings.HasPrefix(arg.Text, bound))
}

// rowsNoneIf is NoRows or, if the test may pick rows, SomeRows.
func rowsNoneIf(none bool) sql.Truth {
	if none {
		return sql.NoRows
	}
	return sql.SomeRows
}

// pipelineEffect is what an aggregation does to the collection it writes.
func pipelineEffect(c *MongoCall) string {
	root, _ := tree.JSON(strings.TrimSpace(c.Args))
	if !strings.Contains(c.Args, "$out") {
		return ""
	}
	if root == nil || root.Kind != '[' {
		return "replace"
	}
	narrowed, effect := false, "replace"
	for _, stage := range root.Kids {
		if m := stage.Get("$match"); m != nil {
			narrowed = true
			if filterTruth(m, 0) == sql.NoRows {
				effect = act.DropsCollection // what is left is empty
			}
		}
		if stage.Get("$limit", "$sample", "$skip") != nil {
			narrowed = true
			if stage.Str("$limit") == "0" {
				effect = act.DropsCollection
			}
		}
		if out := stage.Str("$out"); out != "" && narrowed && strings.HasSuffix(c.Receiver, "."+out) {
			effect = act.DropsCollection // a collection is written over by a part of itself
		}
	}
	return effect
}

// bulkEffect is the worst that a list of writes does.
func bulkEffect(args string) string {
	plain := strings.NewReplacer(`"`, "", "'", "").Replace(strings.Join(strings.Fields(args), ""))
	switch {
	case strings.Contains(plain, "deleteMany:{filter:{}"):
		return act.DeletesAll
	case strings.Contains(plain, "updateMany:{filter:{}"):
		return "update.unbounded"
	}
	return "update.scoped"
}
