package events

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// ErrVersion is an event of a type or schema version that this program does not
// know: a newer one has written it.
var ErrVersion = errors.New("a newer program has written the event: start that one")

// reader says how the events of one type become its present struct.
type reader struct {
	present reflect.Type
	newest  int // schema version that this program writes; 0 is 1. Those before it are read, too
	// legacy says that all events of the type have schema version 0: the specification's
	// status records without an action binding.
	legacy bool
	// sealed says that personal members may be stored in the payload as commitments,
	// with what unseals them: only the others are read.
	sealed bool
	// inSQL says that the database reads the payload (index events_settled_modes and
	// function erase_subject), so that a row holds the text itself.
	inSQL bool
}

// versions are the oldest and the newest schema version of the events of a type.
func (r reader) versions() (oldest, newest int) {
	if r.legacy {
		return 0, 0
	}
	return 1, max(1, r.newest)
}

// ReadInSQL says whether a row must hold the payload of a type as it is.
func ReadInSQL(eventType string) bool { return readers[eventType].inSQL }

// Sealed says whether events of a type have personal members, which are stored sealed.
func Sealed(eventType string) bool { return readers[eventType].sealed }

// Newest is the schema version in which this program writes events of a type.
func Newest(eventType string) int {
	_, newest := readers[eventType].versions()
	return newest
}

// readers is every type there is, and the one place in which stored bytes become
// structs.
var readers = map[string]reader{
	TypeSigningKeyActivated:      {present: reflect.TypeFor[SigningKeyActivated]()},
	TypeSigningKeyRetired:        {present: reflect.TypeFor[SigningKeyRetired]()},
	TypeKeyRequested:             {present: reflect.TypeFor[KeyRequested]()},
	TypeKeyIssued:                {present: reflect.TypeFor[KeyIssued](), sealed: true},
	TypeKeyRevoked:               {present: reflect.TypeFor[KeyRevoked]()},
	TypeCallCompleted:            {present: reflect.TypeFor[CallCompleted](), sealed: true},
	TypeWorkflowCompleted:        {present: reflect.TypeFor[WorkflowCompleted](), legacy: true},
	TypeCustomerCreated:          {present: reflect.TypeFor[CustomerCreated](), sealed: true},
	TypeOrganizationCreated:      {present: reflect.TypeFor[OrganizationCreated]()},
	TypeOrganizationUpdated:      {present: reflect.TypeFor[OrganizationUpdated]()},
	TypeMemberAdded:              {present: reflect.TypeFor[MemberAdded](), sealed: true},
	TypeMemberRemoved:            {present: reflect.TypeFor[MemberRemoved]()},
	TypeOrganizationTokenIssued:  {present: reflect.TypeFor[OrganizationTokenIssued]()},
	TypeOrganizationTokenRevoked: {present: reflect.TypeFor[OrganizationTokenRevoked]()},
	TypePolicyDrafted:            {present: reflect.TypeFor[PolicyDrafted]()},
	TypePolicyActivated:          {present: reflect.TypeFor[PolicyActivated]()},
	TypeGuardReported:            {present: reflect.TypeFor[GuardReported](), sealed: true},
	TypeDecisionRecorded:         {present: reflect.TypeFor[DecisionRecorded](), sealed: true},
	TypeApprovalRecorded:         {present: reflect.TypeFor[ApprovalRecorded]()},
	TypeReceiptRecorded:          {present: reflect.TypeFor[ReceiptRecorded]()},
	TypeCustomerBound:            {present: reflect.TypeFor[CustomerBound]()},
	TypePurchaseFulfilled:        {present: reflect.TypeFor[PurchaseFulfilled]()},
	TypePurchaseRefunded:         {present: reflect.TypeFor[PurchaseRefunded]()},
	TypeSubscriptionUpdated:      {present: reflect.TypeFor[SubscriptionUpdated]()},
	TypeSubscriptionCharged:      {present: reflect.TypeFor[SubscriptionCharged]()},
	TypeInvoicePaid:              {present: reflect.TypeFor[InvoicePaid]()},
	TypeEntitlementGranted:       {present: reflect.TypeFor[EntitlementGranted]()},
	TypeEntitlementRevoked:       {present: reflect.TypeFor[EntitlementRevoked]()},
	TypeDownloadConsumed:         {present: reflect.TypeFor[DownloadConsumed]()},
	TypeAgentRegistered:          {present: reflect.TypeFor[AgentRegistered](), sealed: true},
	TypeAgentVerified:            {present: reflect.TypeFor[AgentVerified]()},
	TypeAgentClaimed:             {present: reflect.TypeFor[AgentClaimed]()},
	TypeAccessTokenRevoked:       {present: reflect.TypeFor[AccessTokenRevoked]()},
	TypeCreditGranted:            {present: reflect.TypeFor[CreditGranted]()},
	TypePaymentClaimed:           {present: reflect.TypeFor[PaymentClaimed](), sealed: true},
	TypePaymentSettled:           {present: reflect.TypeFor[PaymentSettled](), sealed: true, inSQL: true},
	TypePaymentRefused:           {present: reflect.TypeFor[PaymentRefused]()},
	TypePaymentUnknown:           {present: reflect.TypeFor[PaymentUnknown](), sealed: true},
	TypeIdentifierReserved:       {present: reflect.TypeFor[IdentifierReserved]()},
	TypeRefundRequested:          {present: reflect.TypeFor[RefundRequested](), sealed: true},
	TypeRefundApproved:           {present: reflect.TypeFor[RefundApproved]()},
	TypeRefundSent:               {present: reflect.TypeFor[RefundSent](), sealed: true},
	TypeWebhookCreated:           {present: reflect.TypeFor[WebhookCreated](), sealed: true},
	TypeWebhookRotated:           {present: reflect.TypeFor[WebhookRotated](), sealed: true},
	TypeWebhookRemoved:           {present: reflect.TypeFor[WebhookRemoved]()},
	TypeCheckpointsBegun:         {present: reflect.TypeFor[CheckpointsBegun]()},
	TypeRollbackDeclared:         {present: reflect.TypeFor[RollbackDeclared]()},
	TypeSubjectErased:            {present: reflect.TypeFor[SubjectErased](), sealed: true, inSQL: true},
	TypeExportCreated:            {present: reflect.TypeFor[ExportCreated](), sealed: true},
}

// Read decodes the payload of an event of a type and schema version into the
// present struct of that type, whatever version it was stored in: a version differs
// from the one before only by what is sealed in it, and by optional members. stored
// is a pointer to that struct. Personal members that are sealed stay what they are
// stored as: commitments.
func Read(eventType string, schemaVersion int, payload []byte, stored any) error {
	r, err := readerInto(eventType, schemaVersion, stored)
	switch {
	case err != nil:
		return err
	case r.sealed:
		return json.Unmarshal(payload, stored)
	}
	return canon.Decode(payload, stored)
}

// ReadOpened is Read for a payload whose personal members have been put back, or
// which are gone for ever and stay commitments. It was checked when it was sealed.
func ReadOpened(eventType string, schemaVersion int, payload []byte, stored any) error {
	if _, err := readerInto(eventType, schemaVersion, stored); err != nil {
		return err
	}
	return canon.DecodeChecked(payload, stored)
}

// readerInto is the reader of a type whose present struct stored points to.
func readerInto(eventType string, schemaVersion int, stored any) (reader, error) {
	r, err := readerOf(eventType, schemaVersion)
	if err == nil && reflect.TypeOf(stored) != reflect.PointerTo(r.present) {
		err = fmt.Errorf("read %s into %T, want *%s", eventType, stored, r.present)
	}
	return r, err
}

func readerOf(eventType string, schemaVersion int) (reader, error) {
	r, known := readers[eventType]
	oldest, newest := r.versions()
	switch {
	case !known:
		return r, fmt.Errorf("%w (type %s)", ErrVersion, eventType)
	case schemaVersion < oldest || schemaVersion > newest:
		return r, fmt.Errorf("%w (%s, schema version %d)", ErrVersion, eventType, schemaVersion)
	}
	return r, nil
}

// Signed is what all events with a signed record have in common.
type Signed struct {
	Record    jsontext.Value // part of the payload it was read from
	Integrity seal.Integrity
	VerifyURL string // empty where the event does not say
	Member    string // cus_… who caused it; empty likewise
}

// ReadSigned reads these members alone, of whatever type, and does not look into the
// record. signed is false if the event has none.
func ReadSigned(eventType string, schemaVersion int, payload []byte) (s Signed, signed bool, err error) {
	if _, err := readerOf(eventType, schemaVersion); err != nil {
		return s, false, err
	}
	start, end, signed := canon.Find(payload, "integrity")
	if !signed || string(payload[start:end]) == "null" {
		return s, false, nil
	}
	if err := json.Unmarshal(payload[start:end], &s.Integrity); err != nil {
		return s, true, fmt.Errorf("integrity: %w", err)
	}
	s.Record = RecordIn(payload)
	if s.VerifyURL, err = textIn(payload, "verifyUrl"); err != nil {
		return s, true, err
	}
	s.Member, err = textIn(payload, "member")
	return s, true, err
}

// RecordIn is the record inside of a payload, nil if it has none.
func RecordIn(payload []byte) jsontext.Value {
	start, end, found := canon.Find(payload, "record")
	if !found {
		return nil
	}
	return jsontext.Value(payload[start:end:end])
}

// textIn is a text at the top of a payload, empty if it is not there.
func textIn(payload []byte, name string) (text string, err error) {
	start, end, found := canon.Find(payload, name)
	if !found {
		return "", nil
	}
	if err := json.Unmarshal(payload[start:end], &text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
