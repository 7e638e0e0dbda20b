package api

// reasons are the codes with which an operation refuses a body that has the
// published shape: what JSON Schema cannot say. The description of the operation
// names them.
func (op *operation) reasons() []string { return refusals[op.id] }

// refusals are those codes, by operation.
var refusals = map[string][]string{}
