package events

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// TestGoldenBytes decodes the golden payloads of each type and encodes them again. If a byte
// changes, the type needs a new schema version. Together the payloads of a type have all its
// members, so the test also detects a renamed or moved member.
func TestGoldenBytes(t *testing.T) {
	for _, name := range Types {
		k := kinds[name]
		if noun, verb, ok := strings.Cut(name, "."); !ok || noun == "" || verb == "" {
			t.Errorf("type %q is not a noun and a verb", name)
		}
		if k.shown == nil {
			t.Errorf("%s: name the read models that show it, or say nowhere", name)
		}
		seen := map[string]bool{}
		for _, golden := range k.golden {
			stored := reflect.New(k.stored)
			if err := canon.DecodeChecked([]byte(golden), stored.Interface()); err != nil {
				t.Errorf("%s: %v in %s", name, err, golden)
				continue
			}
			if got, err := canon.Marshal(stored.Elem().Interface()); err != nil || string(got) != golden {
				t.Errorf("%s\ngot  %s, %v\nwant %s", name, got, err, golden)
			}
			if value, err := Stored(name, Newest(name), []byte(golden)); err != nil || reflect.TypeOf(value) != k.stored {
				t.Errorf("%s: Stored gives %T, %v", name, value, err)
			}
			members, err := canon.Members([]byte(golden))
			if err != nil {
				t.Fatal(err)
			}
			for member := range members {
				seen[member] = true
			}
		}
		for _, m := range membersOf(k.stored) {
			if !seen[m.name] {
				t.Errorf("%s: no golden payload has the member %s", name, m.name)
			}
		}
	}
}

// machineText lists the members that contain no free text in any type: ids, constants, numbers and
// software addresses. Members whose names end in Id, Hash, At, Until, Url, Version or Key count as
// such, too.
var machineText = strings.Fields(`product subscription subject payment mode member plan status state source providerCustomer network
	invoice evidence cause author asset amount version validBefore validAfter topics signature session service scopes rotates root role
	providerEvent payTo operation object method machine identityType id head extensions createdBy charge change changed buyerRef before
	arguments addresses activator type actor stream risk decision matchedRuleIds severity field ruleId`)

// inTheClear lists the members whose free text is stored unencrypted, each with the reason.
var inTheClear = map[string]string{
	"organization.created name":          "the name of an organization, not of a person",
	"organization.updated name":          "the name of an organization, not of a person",
	"organization_token.issued name":     "what the token is for; auditors compare tokens by it",
	"webhook.created name":               "what the webhook is for; its address is sealed",
	"policy.drafted policy":              "the rules that every verdict is checked against",
	"policy.activated policy":            "the rules that every verdict is checked against",
	"policy.drafted lint.message":        "texts of our own rules",
	"policy.drafted lint.evidence":       "a part of the policy",
	"ledger.checkpoints_begun statement": "a text of ours",
	"workflow.completed workflow":        "computed by rules; holds codes only",

	// Auditors must be able to read the reason of an action, even if the person is erased later.
	// The form tells the person that the reason is kept.
	"access_token.revoked reason":       "why an operator or a client did it",
	"entitlement.granted reason":        "why an operator did it",
	"entitlement.revoked reason":        "why an operator did it",
	"key.revoked reason":                "why it was done",
	"member.removed reason":             "why it was done",
	"organization.updated reason":       "why it was done",
	"organization_token.revoked reason": "why it was done",
	"payment.refused reason":            "a code of the facilitator, or why an operator did it",
	"payment.unknown reason":            "a code of the facilitator",
	"policy.activated reason":           "why the policy is as it is",
	"policy.drafted reason":             "why the policy should change",
	"refund.approved reason":            "why an operator did it",
	"signing_key.retired reason":        "a word of ours",
	"webhook.removed reason":            "why it was done",

	// Members that contain JSON. The row's inRecord lists their personal members.
	"signing_key.activated record":     "a key",
	"ledger.rollback_declared record":  "positions and a signed note",
	"call.completed record":            "hashes and codes; request and answer are sealed",
	"decision.recorded record":         "its personal members are sealed",
	"decision.recorded asserted":       "an assertion in normal form: codes, numbers and addresses of software",
	"decision.recorded toolArguments":  "sealed",
	"approval.recorded record":         "the signed statement of the reviewer, with the reason that auditors read",
	"receipt.recorded record":          "ids, hashes and codes",
	"export.created record":            "its personal member is sealed",
	"export.requested record":          "its personal member is sealed",
	"export.verified reason":           "a text of the verifier",
	"personal.opened day":              "a date",
	"personal.opened place":            "one of the program's words",
	"payment.claimed prepared.payload": "payloads whose personal members are sealed already",
}

// Each type in the access history declares the member that names what it is about.
func TestTheAccessHistoryNamesWhatItIsAbout(t *testing.T) {
	for _, c := range []struct{ eventType, payload, want string }{
		{TypeMemberAdded, `{"email":{"$committed":"aa"},"memberId":"cus_1","role":"owner"}`, "cus_1"},
		{TypeExportCreated, `{"record":{"exportId":"exp_1"},"integrity":{}}`, "exp_1"},
		{TypeExportVerified, `{"exportId":"exp_1","valid":true}`, "exp_1"},
		{TypeOrganizationUpdated, `{"name":"Acme","reason":"renamed"}`, ""},
		{TypeMemberAdded, `{"memberId":7}`, ""},
	} {
		if got := About(c.eventType, []byte(c.payload)); got != c.want {
			t.Errorf("%s: %q, want %q", c.payload, got, c.want)
		}
	}
	for _, name := range ShownIn("access") {
		if k := kinds[name]; k.about == "" && name != TypeOrganizationCreated && name != TypeOrganizationUpdated {
			t.Errorf("%s does not declare what it is about", name)
		}
	}
}

// TestFreeTextIsSealed checks every member of every type that can contain text which a person
// typed. Such a member must be tagged personal:"true", or be listed in the row's inRecord, or be
// listed above with the reason why it is unencrypted.
func TestFreeTextIsSealed(t *testing.T) {
	used := map[string]bool{}
	for _, name := range Types {
		for _, m := range textsIn(kinds[name].stored, "") {
			what := name + " " + m
			top, _, _ := strings.Cut(m, ".")
			if _, listed := inTheClear[what]; listed {
				used[what] = true
			} else if _, listed := inTheClear[name+" "+top]; listed {
				used[name+" "+top] = true
			} else if !isMachineText(m) {
				t.Errorf(`%s may hold free text: tag it personal:"true", or say why it is stored in the clear`, what)
			}
		}
	}
	for what := range inTheClear {
		if !used[what] {
			t.Errorf("%s is listed, and is not a member that may hold free text", what)
		}
	}
	type noted struct {
		NoteID string `json:"noteId"`
		Note   string `json:"note"`
	}
	if got := textsIn(reflect.TypeFor[noted](), ""); !slices.Equal(got, []string{"noteId", "note"}) || isMachineText("note") || !isMachineText("noteId") {
		t.Errorf("a new type with a note would not be found: %v", got)
	}
}

func isMachineText(member string) bool {
	name := member[strings.LastIndex(member, ".")+1:]
	return slices.Contains(machineText, name) || slices.ContainsFunc([]string{"Id", "Hash", "At", "Until", "Url", "Version", "Key"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// textsIn lists the members of a struct that may contain text and are not encrypted. The members
// of an inner struct are prefixed with the name of the outer member. It skips integrity, which
// contains only hashes, keys and signatures.
func textsIn(t reflect.Type, before string) (list []string) {
	for _, m := range membersOf(t) {
		for m.of.Kind() == reflect.Pointer || m.of.Kind() == reflect.Slice && m.of != reflect.TypeFor[jsontext.Value]() {
			m.of = m.of.Elem()
		}
		switch {
		case m.personal, m.of.Name() == "Integrity":
		case m.of.Kind() == reflect.Struct:
			list = append(list, textsIn(m.of, before+m.name+".")...)
		case m.of.Kind() == reflect.String, m.of.Kind() == reflect.Interface, m.of == reflect.TypeFor[jsontext.Value]():
			list = append(list, before+m.name)
		}
	}
	return list
}

type member struct {
	name     string
	of       reflect.Type
	personal bool
}

// membersOf lists the members of a struct by their JSON names.
func membersOf(t reflect.Type) (list []member) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		list = append(list, member{name, field.Type, field.Tag.Get("personal") == "true"})
	}
	return list
}
