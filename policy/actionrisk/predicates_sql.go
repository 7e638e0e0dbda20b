package actionrisk

// sqlPredicates are the predicates of the sql, nosql and orm tables.
var sqlPredicates = map[string]predicate{}
