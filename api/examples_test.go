package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
)

// withoutExample lists the operations without an example answer, with the reason.
var withoutExample = map[string]string{
	"create_checkout": "no card provider here", "open_billing_portal": "no card provider here", "get_entitlement": "no customer has bought anything",
	"create_download": "no customer has bought anything", "list_customer_entitlements": "the operator chooses who may ask",
	"probe_purchase": "it answers 402", "get_export": "a file", "get_event": "its payload is that of its type", "request_refund": "no call was paid for here",
	"assurance_approve": "nothing waits for a review here", "assurance_get_approval": "nothing waits for a review here",
	"activate_policy": "another admin must activate your own draft",
	"prove_inclusion": "no checkpoints are kept here", "prove_consistency": "no checkpoints are kept here",
}

// exampleLimit is the largest size of an example in bytes. For a longer document, the document
// itself is the example.
const exampleLimit = 6000

// TestExamplesAreWhatTheServiceAnswers sends the example of each operation, with the credentials
// of a caller who may call it, and compares the answer with the published one: it must have the
// same members with the same types.
func TestExamplesAreWhatTheServiceAnswers(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	c := &contractWalk{node: n, t: t, d: n.openAPIDocument(), seen: map[string]int{}}
	c.begin()
	a := asker{contractWalk: c, known: map[string]any{"name": "preflight-actions", "slug": "verification-kit", "orgId": c.org}, key: n.issueKey(), answers: map[string]jsontext.Value{}}
	for pass := range 3 {
		for _, endpoint := range n.server.table {
			if last := endpoint.Method == "DELETE" || endpoint.ID == "sign_out" || endpoint.ID == "revoke_access_token"; pass == 2 || !last {
				a.ask(endpoint)
			}
		}
	}
	for _, endpoint := range n.server.table {
		_, why := withoutExample[endpoint.ID]
		if a.answers[endpoint.ID] == nil && !why && strings.Contains(endpoint.Media, "json") && !a.long[endpoint.ID] && (endpoint.Service == nil || endpoint.Service.Signed) {
			t.Errorf("%s was not answered: %s", endpoint.ID, a.said[endpoint.ID])
		}
	}
	if os.Getenv("UPDATE_EXAMPLES") != "" {
		written, err := contract.Examples(contract.ExampleBase)
		if err != nil {
			t.Fatal(err)
		}
		for id, now := range a.answers {
			if was := written[id]; steady(t, was) == steady(t, now) {
				a.answers[id] = was
			}
		}
		text, err := json.Marshal(a.answers, json.Deterministic(true), jsontext.WithIndent(" "))
		if err == nil {
			err = os.WriteFile("contract/examples.json", append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	published, err := contract.Examples(n.url)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(published)), slices.Sorted(maps.Keys(a.answers))); diff != "" {
		t.Fatalf("other operations have an example: UPDATE_EXAMPLES=1 writes them: %s", diff)
	}
	for _, o := range n.openAPIDocument().operations() {
		if id := fmt.Sprint(o.operation["operationId"]); published[id] != nil {
			instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(published[id]))
			endpoint := n.server.table.Find(id)
			if err == nil {
				err = c.d.schema(t, "paths", o.path, o.method, "responses", fmt.Sprint(endpoint.Success), "content", endpoint.Media, "schema").Validate(instance)
			}
			if err != nil {
				t.Errorf("%s: its example has not its shape: %v", id, err)
			}
		}
	}
	for id, now := range a.answers {
		shape := shapeOf(t, now)
		maps.DeleteFunc(shape, func(at, _ string) bool { return strings.HasSuffix(at, "/ledger/partition") }) // absent for the first partition
		if diff := cmp.Diff(shapeOf(t, published[id]), shape); diff != "" {
			t.Errorf("%s is answered otherwise now (UPDATE_EXAMPLES=1 writes it): %s", id, diff)
		}
	}
}

// ofOneRun matches the values that may differ in each run: times, ids, hashes, signatures, and the
// health of the service, which depends on the load of the machine.
var ofOneRun = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,}|[0-9A-Za-z+/=_-]{40,}|\b1[0-9]{9}\b|"(tokenId|id)":"[0-9a-z]{12}"|"status":"(ok|degraded)"`)

// steady returns an answer with * in place of the values that ofOneRun matches. UPDATE_EXAMPLES
// keeps an example whose steady text is the same, so that the diff shows only what a change has
// changed.
func steady(t *testing.T, text jsontext.Value) string {
	t.Helper()
	if text == nil {
		return ""
	}
	even := text.Clone()
	if err := even.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return ofOneRun.ReplaceAllString(string(even), "*")
}

// asker calls operations. It takes values for later calls from the answers.
type asker struct {
	*contractWalk
	known   map[string]any // members of answers, by name
	key     string
	answers map[string]jsontext.Value
	said    map[string]string // last error, by operation
	long    map[string]bool
}

// ask sends the example of an operation, unless it was answered before.
func (a *asker) ask(o *op.Operation) {
	if a.answers[o.ID] != nil || o.Service != nil && !o.Service.Signed {
		return
	}
	if a.said == nil {
		a.said, a.long = map[string]string{}, map[string]bool{}
	}
	path, ready := a.path(o)
	if !ready {
		a.said[o.ID] = "nothing is known for its path"
		return
	}
	body := a.body(o)
	headers := a.headers(o)
	if o.Input != nil {
		headers = append(headers, "Content-Type", "application/json")
	}
	got := a.send(o.Method, path, body, headers...)
	if got.status != o.Success && !(o.Replays && got.status == http.StatusOK) {
		a.said[o.ID] += fmt.Sprintf("%s %s %.300s: %d %.300s\n", o.Method, path, body, got.status, got.body)
		return
	}
	if !strings.Contains(o.Media, "json") || len(got.body) > exampleLimit {
		a.long[o.ID] = true
		a.learn(got.body)
		a.made(o, got.body)
		return
	}
	a.learn(got.body)
	a.made(o, got.body)
	a.answers[o.ID] = a.masked(got.body)
}

// namedAs maps the names of lists in paths to the names of their ids in answers.
var namedAs = map[string]string{"keys": "keyId", "members": "memberId", "tokens": "tokenId", "webhooks": "webhookId"}

var brace = regexp.MustCompile(`([a-z]+)/\{([a-zA-Z]+)\}`)

func (a *asker) path(o *op.Operation) (path string, ready bool) {
	ready = true
	path = brace.ReplaceAllStringFunc(o.Path, func(m string) string {
		parts := brace.FindStringSubmatch(m)
		name := parts[2]
		if other := namedAs[parts[1]]; name == "id" && other != "" {
			name = other
		}
		if parts[1] == "rules" {
			return "rules/git.push.force-protected"
		}
		value, is := a.known[name].(string)
		ready = ready && is
		return parts[1] + "/" + url.PathEscape(value)
	})
	return path, ready
}

// body returns the operation's example with ids that exist.
func (a *asker) body(o *op.Operation) string {
	text := o.Example
	if o.ID == "verify_record" {
		return string(a.answersRaw("agent_action_safety_loop"))
	}
	var members map[string]any
	if json.Unmarshal([]byte(text), &members) != nil {
		return text
	}
	for name := range members {
		if now, known := a.known[name]; known && strings.Contains(" decisionId decisionRecordHash bindingHash orgId client_id client_secret paymentId ", " "+name+" ") {
			members[name] = now
		}
	}
	switch o.ID {
	case "revoke_access_token", "introspect_access_token":
		members["token"] = a.known["access_token"]
	case "create_export":
		return `{}`
	case "send_webhook_again":
		delete(members, "messageId")
	}
	changed, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		a.t.Fatal(err)
	}
	return string(changed)
}

func (a *asker) answersRaw(id string) []byte {
	raw, _ := a.known["raw "+id].([]byte)
	return raw
}

// headers returns the credentials of a caller who may call the operation.
func (a *asker) headers(o *op.Operation) []string {
	switch o.Access.Kind {
	case credential.Payer:
		if o.Service == nil {
			a.nonce++
			required := a.unpaid("/api/purchase/verification-kit")
			return []string{"PAYMENT-SIGNATURE", buyer.Order(required, fmt.Sprint("example", a.nonce), a.clock.Now()).Header()}
		}
		return []string{"X-API-Key", a.key}
	case credential.KeyHolder:
		return []string{"X-API-Key", a.key}
	case credential.Member, credential.Person, credential.Customer, credential.AnyCustomer:
		return []string{"Cookie", a.session()}
	case credential.Claimant:
		return []string{"Cookie", a.session(), "Authorization", "Bearer " + a.token(a.claimed, "")}
	}
	return nil
}

// learn stores the members of an answer by name. The first value of a name is kept.
func (a *asker) learn(body []byte) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return
	}
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range sortedKeys(v) {
				if _, known := a.known[name]; !known || name == "recordHash" {
					a.known[name] = v[name]
				}
				visit(v[name])
			}
			if integrity, is := v["integrity"].(map[string]any); is && a.known["decisionRecordHash"] == nil {
				if record, _ := v["record"].(map[string]any); record["decisionId"] == a.known["decisionId"] && record["bindingHash"] != nil {
					a.known["decisionRecordHash"], a.known["bindingHash"] = integrity["recordHash"], record["bindingHash"]
				}
			}
		case []any:
			for _, element := range v {
				visit(element)
			}
		}
	}
	visit(value)
}

// made replaces stored values by those that an operation has just created.
func (a *asker) made(o *op.Operation, body []byte) {
	a.known["raw "+o.ID] = body
	var members map[string]any
	if o.Method != http.MethodPost || json.Unmarshal(body, &members) != nil {
		return
	}
	record, _ := members["record"].(map[string]any)
	integrity, _ := members["integrity"].(map[string]any)
	switch {
	case record["receiptId"] != nil:
		a.known["receiptId"] = record["receiptId"]
	case record["decisionId"] != nil && record["bindingHash"] != nil:
		a.known["decisionId"], a.known["bindingHash"], a.known["decisionRecordHash"] = record["decisionId"], record["bindingHash"], integrity["recordHash"]
	}
	for _, name := range []string{"keyId", "memberId", "tokenId", "webhookId", "draftId"} {
		if members[name] != nil && (name != "memberId" || o.ID == "add_member") { // in other answers, memberId is the caller's
			a.known[name] = members[name]
		}
	}
}

var secretText = regexp.MustCompile(`(svck_|svco_|svca_|whsec_)[A-Za-z0-9_+/=-]+`)

// masked returns an answer without its secrets, and with the base URL of the examples.
func (a *asker) masked(body []byte) jsontext.Value {
	text := strings.ReplaceAll(string(body), a.url, contract.ExampleBase)
	text = secretText.ReplaceAllString(text, "${1}shown-once")
	if token, is := a.known["access_token"].(string); is {
		text = strings.ReplaceAll(text, token, base64.RawURLEncoding.EncodeToString([]byte("header"))+".payload.signature")
	}
	return jsontext.Value(text)
}

// shapeOf returns the types of all members by path. A null and an empty list are compatible with
// any value.
func shapeOf(t *testing.T, text jsontext.Value) map[string]string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	shape := map[string]string{}
	var visit func(v any, at string)
	visit = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				visit(member, at+"/"+name)
			}
		case []any:
			shape[at] = "list"
		case nil:
			shape[at] = ""
		default:
			shape[at] = fmt.Sprintf("%T", v)
		}
	}
	visit(value, "")
	return shape
}
