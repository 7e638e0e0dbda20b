package actionrisk

import (
	"testing"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/store"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// TestMongoFilters checks for each filter whether the engine says that it selects every document.
func TestMongoFilters(t *testing.T) {
	for filter, all := range map[string]bool{
		"":                                      true,
		"{}":                                    true,
		"{_id:{$exists:true}}":                  true,
		`{"_id": {"$ne": null}}`:                true,
		"{_id:{$nin:[]}}":                       true,
		"{_id:{$not:{$eq:null}}}":               false, // an operator that the engine does not know
		"{$or:[{a:1},{_id:{$exists:true}}]}":    true,
		"{$and:[{},{_id:{$gt:MinKey}}]}":        true,
		"{$nor:[{_id:null}]}":                   true,
		`{$where:"1==1"}`:                       true,
		`{$where:"return true"}`:                true,
		"{$expr:{$eq:[1,1]}}":                   true,
		`{_id:{$regex:".*"}}`:                   true,
		"{_id:5}":                               false,
		`{_id:ObjectId("64b")}`:                 false,
		"{status:'done'}":                       false,
		"{_id:{$exists:true},status:'done'}":    false,
		"{$or:[{a:1},{b:2}]}":                   false,
		"{_id:{$in:[]}}":                        false,
		"{lastSeen:{$lt:new Date(0)}}":          false,
		`{$where:"this.a == this.b"}`:           false,
		"{$and:[{_id:{$exists:true}},{a:1}]}":   false,
		"{created:{$exists:true}}":              false,
		"{$expr:{$eq:['$a','$b']}}":             false,
		"{$or:[{$or:[{$or:[{$or:[{}]}]}]}]}":    true,
		"{$nor:[{a:1}]}":                        false,
		"{_id:{$gte:0,$lt:100}}":                false,
		"{$comment:'all of them'}":              true,
		"{_id:{$ne:'x'}}":                       false,
		"{$where:function(){return true;}}":     false, // code without quotes is not parsed, so the filter counts as selective
		"{a:1":                                  false,
		"{_id:{$exists:false}}":                 false,
		"{\"_id\":{\"$ne\":\"\"}}":              true,
		"{_id: {$exists: true}, $comment: 'x'}": true,
	} {
		if got := stores.MongoAll(filter); got != all {
			t.Errorf("mongoAll(%s) = %v", filter, got)
		}
	}
}

// TestClientVariables checks that variables of database clients are expanded.
func TestClientVariables(t *testing.T) {
	for _, c := range []struct{ client, text, want string }{
		{"psql", "\\set t users\ndrop table :t;", "\\set t users\ndrop table users;"},
		{"psql", "\\set v 'dr' 'op'\n:v table \"x\";", "\\set v 'dr' 'op'\ndrop table \"x\";"},
		{"psql", "\\set t a\nselect x::t, :'t', :\"t\", a:t", "\\set t a\nselect x::t, a, a, a:t"},
		{"psql", "select :t", "select :t"},
		{"sqlcmd", ":setvar v \"DROP TABLE\"\n$(v) x", ":setvar v \"DROP TABLE\"\nDROP TABLE x"},
		{"sqlplus", "define t = users\ndrop table &t;", "define t = users\ndrop table users;"},
		{"hive", "set hivevar:t=users;\ndrop table ${hivevar:t};", "set hivevar:t=users;\ndrop table users;"},
		{"mysql", "set t = 1; select :t", "set t = 1; select :t"},
	} {
		e := &interp.Env{Set: facts.Tables(), Front: current().front, Budget: act.Budget{Left: scan.MaxSteps}}
		if got := store.ExpandClient(e, c.client, c.text, nil); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.client, c.text, got, c.want)
		}
	}
}
