package mcp

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// failure is a JSON-RPC error that is not written yet.
type failure struct {
	id   jsontext.Value // nil if the message has no id, or if it could not be parsed
	code int64
	text string // message of the error; empty means the entry in texts
	data any
}

// texts maps error codes of the protocol to messages. The SDK's own messages are not used, because
// they repeat what the caller sent.
var texts = map[int64]string{
	jsonrpc.CodeParseError:     "invalid JSON",
	jsonrpc.CodeInvalidRequest: "not a request of the Model Context Protocol",
	jsonrpc.CodeMethodNotFound: "method not found",
	jsonrpc.CodeInvalidParams: "params do not match the documented schema; from version 2026-07-28 on, params._meta must contain " +
		"io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities",
	jsonrpc.CodeInternalError:                 "internal error",
	sdk.CodeHeaderMismatch:                    "the header MCP-Protocol-Version, Mcp-Method or Mcp-Name is missing or differs from the message",
	sdk.CodeMissingRequiredClientCapabilities: "the client does not declare a required capability",
	sdk.CodeUnsupportedProtocolVersion:        "unsupported protocol version",
}

// refuse answers with a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, f failure) {
	if f.text == "" {
		f.text = texts[f.code]
	}
	body := struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id,omitzero"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
			Data    any    `json:"data,omitzero"`
		} `json:"error"`
	}{JSONRPC: "2.0", ID: f.id}
	body.Error.Code, body.Error.Message, body.Error.Data = f.code, f.text, f.data
	text, err := json.Marshal(body, json.Deterministic(true), jsontext.EscapeForHTML(true))
	if err != nil {
		text = []byte(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// keptResponse buffers the SDK's answer, so that an error in it can be rewritten.
type keptResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *keptResponse) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *keptResponse) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *keptResponse) Write(p []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(p)
}

// writeTo writes the buffered answer. It copies a result unchanged. For an error it keeps the
// SDK's code and uses our text.
func (k *keptResponse) writeTo(w http.ResponseWriter, m message, e *exchange) {
	media := k.header.Get("Content-Type")
	switch {
	case k.status == 0: // the SDK wrote nothing: the caller has disconnected
		refuse(w, http.StatusServiceUnavailable, failure{id: m.id, code: jsonrpc.CodeInternalError, text: ErrUnavailable.Error()})
		return
	case k.status == http.StatusAccepted:
		w.WriteHeader(k.status)
		return
	case !strings.HasPrefix(media, "application/json") && media != "text/event-stream": // the SDK wrote an error as plain text
		code := int64(jsonrpc.CodeInvalidRequest)
		if k.status >= http.StatusInternalServerError {
			k.status, code = http.StatusServiceUnavailable, jsonrpc.CodeInternalError
		}
		refuse(w, k.status, failure{id: m.id, code: code})
		return
	}
	if f, failed := k.failure(m, e); failed {
		refuse(w, k.status, f)
		return
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(k.status)
	body := k.body.Bytes()
	if m.hasLongID() {
		body = withID(body, m.id)
	}
	_, _ = w.Write(body)
}

// failure returns the error in the buffered answer. It returns false if the answer is not an
// error.
func (k *keptResponse) failure(m message, e *exchange) (failure, bool) {
	var response struct {
		Error *struct {
			Code int64          `json:"code"`
			Data jsontext.Value `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(k.body.Bytes(), &response) != nil || response.Error == nil {
		return failure{}, false
	}
	f := failure{id: m.id, code: response.Error.Code, text: e.said}
	if response.Error.Data != nil {
		f.data = response.Error.Data
	}
	if _, known := texts[f.code]; !known {
		f.code = jsonrpc.CodeInternalError
	}
	return f, true
}
