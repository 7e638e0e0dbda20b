package stores

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/lang/sql"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// A MongoDB filter selects every document, none, or some. These functions decide which.

// MongoAll reports whether a filter selects every document.
func MongoAll(filter string) bool {
	filter = strings.TrimSpace(filter)
	if filter == "" || filter == "null" || filter == "undefined" {
		return true
	}
	root, _ := tree.JSON(filter)
	return root != nil && root.End >= len(filter) && filterTruth(root, 0) == sql.AllRows
}

// filterTruth evaluates a parsed filter. All its members must hold.
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

// memberTruth evaluates one member of a filter.
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

// combined evaluates the list of filters in $or, $and or $nor.
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

// keyHolds are the operands with which a condition on the key excludes no document.
var keyHolds = map[string][]string{"$ne": {"null", "", "0", "-1"}, "$gt": {"", "0"}, "$gte": {"", "0"}, "$regex": {"", ".", ".*", "^", "/./", "/.*/", "/^/"}}

// constantText evaluates $where and $expr, if the condition does not depend on the document.
func constantText(v *tree.Node) sql.Truth {
	if v.Kind == '{' { // for example {$eq: [1, 1]}
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

// keyTruth evaluates a condition on the key, which every document has.
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

// rowsNoneIf returns NoRows if none is set, and SomeRows otherwise.
func rowsNoneIf(none bool) sql.Truth {
	if none {
		return sql.NoRows
	}
	return sql.SomeRows
}

// pipelineEffect returns the effect of an aggregation on the collection that it writes.
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
				effect = act.DropsCollection // the result is empty
			}
		}
		if stage.Get("$limit", "$sample", "$skip") != nil {
			narrowed = true
			if stage.Str("$limit") == "0" {
				effect = act.DropsCollection
			}
		}
		if out := stage.Str("$out"); out != "" && narrowed && strings.HasSuffix(c.Receiver, "."+out) {
			effect = act.DropsCollection // the collection is overwritten with a part of itself
		}
	}
	return effect
}

// bulkEffect returns the most severe effect of a list of writes.
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
