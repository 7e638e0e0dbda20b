package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/policy/canon"
)

// modern is the first protocol version without a handshake.
const modern = "2026-07-28"

// Names of members of _meta.
const (
	metaVersion = "io.modelcontextprotocol/protocolVersion"
	metaPayment = "x402/payment"
)

// ServeHTTP checks the host, the origin and the method of a request, and answers the message in
// it.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Origin")
	origin, ours := d.origin(r.Header.Values("Origin"))
	switch {
	case !d.ownHost(r.Host):
		refuse(w, http.StatusForbidden, failure{code: jsonrpc.CodeInvalidRequest, text: "this host name is not served here"})
		return
	case !ours:
		refuse(w, http.StatusForbidden, failure{code: jsonrpc.CodeInvalidRequest, text: "this origin is not allowed"})
		return
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, X-Request-Id")
	}
	switch r.Method {
	case http.MethodPost:
		d.post(w, r)
	case http.MethodOptions:
		h.Set("Allow", "POST, OPTIONS")
		h.Set("Access-Control-Allow-Methods", "POST")
		h.Set("Access-Control-Allow-Headers", "Accept, Content-Type, Authorization, X-API-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "+
			"Mcp-Session-Id, Last-Event-ID, PAYMENT-SIGNATURE, X-PAYMENT, Idempotency-Key, Access-Control-Expose-Headers")
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	default: // GET and DELETE are refused: there is no event stream and no session
		h.Set("Allow", "POST, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, failure{code: jsonrpc.CodeInvalidRequest, text: "method not allowed"})
	}
}

// ownHost reports whether a Host header names this service. It ignores the port.
func (d *Door) ownHost(host string) bool {
	name := strings.ToLower(Hostname(host))
	return name == d.host || d.config.Loopback && IsLoopback(name)
}

// Hostname returns the host name of a Host header, without the port.
func Hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// IsLoopback reports whether a host name is a loopback name or address.
func IsLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// origin returns the value of the Origin header, or "" if there is none, and whether a page of
// that origin may call this service.
func (d *Door) origin(values []string) (origin string, allowed bool) {
	switch len(values) {
	case 0:
		return "", true
	case 1:
	default:
		return "", false
	}
	o, ok := parseOrigin(values[0])
	if !ok {
		return "", false
	}
	return values[0], slices.Contains(d.origins, o.String()) || d.config.Loopback && IsLoopback(o.Hostname())
}

// parseOrigin parses an origin: scheme, host and port. It refuses "null".
func parseOrigin(text string) (*url.URL, bool) {
	o, err := url.Parse(strings.ToLower(text))
	if err != nil || o.Host == "" || o.Scheme != "http" && o.Scheme != "https" || o.Scheme+"://"+o.Host != strings.ToLower(text) {
		return nil, false
	}
	if o.Scheme == "http" && o.Port() == "80" || o.Scheme == "https" && o.Port() == "443" {
		o.Host = strings.TrimSuffix(o.Host, ":"+o.Port())
	}
	return o, true
}

func (d *Door) post(w http.ResponseWriter, r *http.Request) {
	text, status, refused := d.readMessage(w, r)
	if refused != nil {
		refuse(w, status, *refused)
		return
	}
	done, err := d.config.Compute(r.Context(), len(text))
	if err != nil {
		status, said := d.config.Unread(w.Header(), err)
		refuse(w, status, failure{code: jsonrpc.CodeInternalError, text: said})
		return
	}
	text = d.withoutNUL(text)
	isBatch := jsontext.Value(text).Kind() == '['
	var m message
	var batch []jsontext.Value
	if refused = checkText(text); refused == nil {
		if isBatch {
			batch, refused = parseBatch(text, r.Header)
		} else if m, refused = parseMessage(text); refused == nil {
			refused = m.checkHeaders(r.Header)
		}
	}
	done() // free this compute slot, because each call in the message takes its own
	if refused != nil {
		refuse(w, http.StatusBadRequest, *refused)
		return
	}
	if !d.config.Admit(w, r) {
		return
	}
	if isBatch {
		d.answerBatch(w, r, batch)
		return
	}
	d.answer(w, r, m, text)
}

// answer answers one message that passed the checks in post.
func (d *Door) answer(w http.ResponseWriter, r *http.Request, m message, text []byte) {
	if answered := m.answerHere(w); answered {
		return
	}
	e := &exchange{request: r, payment: m.payment}
	inner := r.Clone(context.WithValue(r.Context(), exchangeKey, e))
	text = m.withShortID(text)
	inner.Body, inner.ContentLength = io.NopCloser(strings.NewReader(string(text))), int64(len(text))
	inner.Header.Set("Content-Type", "application/json")
	inner.Header.Set("Accept", "application/json, text/event-stream") // the SDK requires both media types, although it sends one
	inner.Header.Del("Last-Event-Id")
	if m.name != "" {
		inner.Header.Set("Mcp-Name", m.name)
	}
	if m.negotiates() {
		inner.Header.Del("Mcp-Protocol-Version")
	}
	kept := &keptResponse{header: http.Header{}}
	d.next.ServeHTTP(kept, inner)
	kept.writeTo(w, m, e)
}

// answerBatch answers the messages of a batch in order, with a list of the answers. Notifications
// get no answer.
func (d *Door) answerBatch(w http.ResponseWriter, r *http.Request, batch []jsontext.Value) {
	var answers [][]byte
	for _, text := range batch {
		kept := &keptResponse{header: http.Header{}}
		m, refused := parseMessage(text)
		if refused == nil && m.method == "initialize" {
			refused = &failure{id: m.id, code: jsonrpc.CodeInvalidRequest, text: "initialize must not be in a batch"}
		}
		if refused != nil {
			refuse(kept, http.StatusBadRequest, *refused)
		} else {
			m.version = r.Header.Get("Mcp-Protocol-Version")
			d.answer(kept, r, m, text)
		}
		if kept.body.Len() > 0 {
			answers = append(answers, kept.body.Bytes())
		}
	}
	if len(answers) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(slices.Concat([]byte("["), bytes.Join(answers, []byte(",")), []byte("]")))
}

// readMessage reads the body, and checks its size and content type.
func (d *Door) readMessage(w http.ResponseWriter, r *http.Request) ([]byte, int, *failure) {
	tooLarge := &failure{code: jsonrpc.CodeInvalidRequest, text: "the message is larger than " + strconv.Itoa(maxMessage) + " bytes"}
	if r.ContentLength > maxMessage {
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	case err != nil:
		status, text := d.config.Unread(w.Header(), err)
		return nil, status, &failure{code: jsonrpc.CodeInvalidRequest, text: text}
	}
	media, params, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ","))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, http.StatusUnsupportedMediaType, &failure{code: jsonrpc.CodeInvalidRequest, text: "content type must be application/json"}
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return nil, http.StatusUnsupportedMediaType, &failure{code: jsonrpc.CodeInvalidRequest, text: "content encoding is not supported"}
	}
	return text, 0, nil
}

// message contains the members of a JSON-RPC message that Door uses.
type message struct {
	id      jsontext.Value // nil for a notification
	method  string         // empty for a response
	version string         // from the MCP-Protocol-Version header; empty without it
	said    bool           // whether _meta names a version
	name    string         // from Mcp-Name, decoded
	payment jsontext.Value
}

// withoutNUL replaces escaped NUL characters in the argument that a tool's TakesNUL names.
func (d *Door) withoutNUL(text []byte) []byte {
	for _, t := range d.config.Tools {
		if t.TakesNUL != "" && bytes.Contains(text, []byte(`"`+t.Name+`"`)) {
			text = canon.ReplaceNUL(text, "params", "arguments", t.TakesNUL)
		}
	}
	return text
}

// checkText checks that a text is strict JSON. Otherwise, of two members with the same name, Door
// could check the first and the SDK use the second.
func checkText(text []byte) *failure {
	err := canon.Check(text)
	if err == nil {
		return nil
	}
	said := err.Error()
	if place := (*canon.Error)(nil); errors.As(err, &place) && place.Path != "" {
		said += " at " + place.Path // over HTTP the same error has this path in the member "path"
	}
	return &failure{code: jsonrpc.CodeParseError, text: said}
}

// noBatches is the first version without batches. It also introduced the header
// MCP-Protocol-Version, so a request without that header comes from an older version.
const noBatches = "2025-06-18"

// parseBatch parses a batch that passed checkText.
func parseBatch(text []byte, h http.Header) ([]jsontext.Value, *failure) {
	invalid := func(said string) ([]jsontext.Value, *failure) {
		return nil, &failure{code: jsonrpc.CodeInvalidRequest, text: said}
	}
	if refused := new(message).checkHeaders(h); refused != nil {
		return nil, refused
	}
	if h.Get("Mcp-Protocol-Version") >= noBatches {
		return invalid("batches are not supported from " + noBatches + " on")
	}
	var batch []jsontext.Value
	if err := json.Unmarshal(text, &batch); err != nil || len(batch) == 0 || len(batch) > maxBatch {
		return invalid("a batch must have 1 to " + strconv.Itoa(maxBatch) + " messages")
	}
	return batch, nil
}

// parseMessage parses a message that passed checkText.
func parseMessage(text []byte) (message, *failure) {
	invalid := func(id jsontext.Value, text string) (message, *failure) {
		return message{}, &failure{id: id, code: jsonrpc.CodeInvalidRequest, text: text}
	}
	if jsontext.Value(text).Kind() != '{' {
		return invalid(nil, "not a JSON-RPC 2.0 message")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return invalid(nil, "not a JSON-RPC 2.0 message")
	}
	m := message{id: members["id"]}
	if m.id != nil && !isID(m.id) {
		return invalid(nil, "id must be a string or an integer")
	}
	_, isResult := members["result"]
	_, isError := members["error"]
	switch method := members["method"]; {
	case string(members["jsonrpc"]) != `"2.0"`:
		return invalid(m.id, "not a JSON-RPC 2.0 message")
	case method == nil && m.id != nil && (isResult || isError):
	case method == nil || method.Kind() != '"':
		return invalid(m.id, "method is required")
	case json.Unmarshal(method, &m.method) != nil || m.method == "":
		return invalid(m.id, "method is required")
	}
	var params struct {
		Meta map[string]jsontext.Value `json:"_meta"`
	}
	if json.Unmarshal(members["params"], &params) == nil { // on failure the SDK refuses the params
		if m.payment = params.Meta[metaPayment]; m.payment.Kind() == 'n' {
			m.payment = nil // null means no payment
		}
		_, m.said = params.Meta[metaVersion]
	}
	return m, nil
}

// isID reports whether a value is a string or an integer. The integer may have any size, because
// the id is only sent back.
func isID(id jsontext.Value) bool {
	return id.Kind() == '"' || id.Kind() == '0' && !bytes.ContainsAny(id, ".eE")
}

// shortID replaces an id that the SDK would round.
const shortID = "0"

// hasLongID reports whether the id is an integer that a double cannot represent exactly. The SDK
// parses ids as doubles.
func (m *message) hasLongID() bool { return m.id.Kind() == '0' && !canon.IsExact(string(m.id)) }

// withShortID returns the message with shortID in place of an id that the SDK would round.
func (m *message) withShortID(text []byte) []byte {
	if !m.hasLongID() {
		return text
	}
	return withID(text, jsontext.Value(shortID))
}

// withID returns the message with another id. The other members do not change.
func withID(text []byte, id jsontext.Value) []byte {
	var members map[string]jsontext.Value
	if json.Unmarshal(text, &members) != nil || members["id"] == nil {
		return text
	}
	members["id"] = id
	changed, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return text
	}
	return changed
}

// checkHeaders reads the headers that repeat members of the message, and checks their form. The
// SDK checks that they match the message.
func (m *message) checkHeaders(h http.Header) *failure {
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		if len(h.Values(name)) > 1 {
			return &failure{id: m.id, code: sdk.CodeHeaderMismatch}
		}
	}
	if m.version = h.Get("Mcp-Protocol-Version"); m.negotiates() {
		m.version = ""
	}
	if supported := sdk.SupportedProtocolVersions(); m.version != "" && !slices.Contains(supported, m.version) {
		data := map[string]any{"supported": supported}
		if isVersion(m.version) {
			data["requested"] = m.version
		}
		return &failure{id: m.id, code: sdk.CodeUnsupportedProtocolVersion, data: data}
	}
	var ok bool
	if m.name, ok = decodeHeader(h.Get("Mcp-Name")); !ok {
		return &failure{id: m.id, code: sdk.CodeHeaderMismatch}
	}
	return nil
}

// negotiates reports whether a message is an initialize of a version with a handshake. The body of
// initialize contains the version of the client, and the answer the version of the server. So the
// version header is ignored.
func (m *message) negotiates() bool { return m.method == "initialize" && !m.said }

// isVersion reports whether a text looks like a version, so that an answer may safely repeat it.
func isVersion(text string) bool {
	return len(text) <= maxVersion && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == ""
}

// decodeHeader decodes the value of a header, which may have the form =?base64?…?=.
func decodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, true
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	return string(decoded), err == nil
}

// legacyMethods are the methods of the versions with a handshake.
var legacyMethods = []string{"initialize", "ping", "tools/list", "tools/call", "resources/list",
	"resources/templates/list", "resources/read", "prompts/list", "prompts/get"}

// answerHere answers messages that the SDK does not need: responses, because the server sends no
// requests; unknown notifications; and unknown methods in old versions, whose clients expect
// status 200 with that error. It returns false if it has not answered.
func (m message) answerHere(w http.ResponseWriter) bool {
	if m.version >= modern || m.said {
		return false
	}
	switch {
	case m.id == nil, m.method == "":
		w.WriteHeader(http.StatusAccepted)
	case !slices.Contains(legacyMethods, m.method):
		refuse(w, http.StatusOK, failure{id: m.id, code: jsonrpc.CodeMethodNotFound})
	default:
		return false
	}
	return true
}
