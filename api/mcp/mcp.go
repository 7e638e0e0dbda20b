// Package mcp serves the Model Context Protocol: streamable HTTP on one path, POST only, without
// sessions. Each answer is one JSON text. It supports the protocol versions 2024-11-05 to
// 2025-11-25, which begin with a handshake (initialize), and 2026-07-28, in which every request
// describes itself (in _meta and in headers that repeat it). The official SDK implements the
// protocol. A Door is the handler of one path. Before the SDK, it refuses requests for these
// reasons, in this order:
//
//	Host        not this service (protects from DNS rebinding)         403
//	Origin      a page of an origin that is not allowed               403
//	method      other than POST                                       405
//	body        too large, not JSON                                   413, 415
//	message     not strict JSON, not JSON-RPC 2.0                     400  -32700, -32600
//	batch       after 2025-03-26, empty, or too long                  400  -32600
//	version     a protocol version that is not supported              400  -32022
//	credential  invalid                                               401
//
// After the SDK has answered, the Door rewrites every error: it keeps the code of the protocol,
// and replaces the text by our own, which never repeats what the caller sent.
//
// The package depends on nothing else of countersign. Config contains the tools, resources and
// prompts with their functions.
package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Versions lists the supported versions of the protocol, newest first.
func Versions() []string {
	versions := slices.Sorted(slices.Values(sdk.SupportedProtocolVersions()))
	slices.Reverse(versions)
	return versions
}

// Config configures a door.
type Config struct {
	Name, Title, Version, Website string // description of the server, for initialize
	Instructions                  string // text for the model that uses the server
	BaseURL                       string // base URL; its host and origin are always allowed
	Loopback                      bool   // the service listens on a loopback address, so every loopback name is allowed as host and origin
	Origins                       []string
	// Admit checks the credential of a request, if there is one. If it returns false, it has
	// answered the request.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Compute waits for a slot to parse a message of a number of bytes. It returns the function
	// that frees the slot. Unread turns its error into the answer.
	Compute func(ctx context.Context, octets int) (done func(), err error)
	// Unread returns the status and the text of the answer to a body that could not be read.
	Unread    func(http.Header, error) (status int, text string)
	Panicked  func(ctx context.Context, value any)
	Tools     []Tool
	Resources []Resource
	Prompts   []Prompt
}

// Tool is a function that a model may call.
type Tool struct {
	Name, Title, Description string
	Input, Output            jsontext.Value // JSON Schemas of type object, as text, because every list of tools contains them
	PriceUSD                 string         // price, such as "0.01"; empty if the tool is free
	ReadOnly                 bool           // the tool changes nothing
	TakesNUL                 string         // name of the argument whose text may contain an escaped NUL, which is replaced by U+FFFD
	Call                     func(context.Context, Call) Result
}

// Call is one call of a tool.
type Call struct {
	Request   *http.Request  // HTTP request that contained the call; its headers contain the caller's credential
	Arguments jsontext.Value // an object, unless the caller violates the schema
	Payment   jsontext.Value // _meta["x402/payment"]; nil if there is none
}

// Result is the result of a call.
type Result struct {
	Body       []byte // JSON; it is always sent as text
	Structured bool   // whether Body is also sent as structured content
	Failed     bool   // whether Body is an error that the model should read
	Meta       map[string]any
}

// Resource is a text that a client can read. If its URI ends with a variable in braces, each value
// of the variable names one text.
type Resource struct {
	URI, Name, Title, Description, Media string
	Listed                               bool // listed as a resource; otherwise as a template
	Public                               bool // the text is the same for every caller, and may be cached for ttl
	// Read returns the text. It returns ErrNotFound if the resource does not exist, or if the
	// caller may not read it.
	Read func(ctx context.Context, r *http.Request, variable string) (string, error)
}

// ErrNotFound is the error for a resource that does not exist or that the caller may not read.
// Both get the same answer, so that other callers cannot find out whether a resource exists.
var ErrNotFound = errors.New("unknown resource")

// ErrUnavailable is the error for a resource that cannot be read at the moment.
var ErrUnavailable = errors.New("temporarily unavailable")

// Prompt is a text with which a person can start a conversation.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	Text                     func(arguments map[string]string) string
}

// Argument is a value that the person enters for a prompt.
type Argument struct {
	Name, Description string
	Required          bool
}

// Door serves MCP at one path.
type Door struct {
	config  Config
	host    string // host name of the base URL
	origins []string
	next    http.Handler
}

// New returns the handler of one path. All requests share one server of the SDK.
func New(c Config) (*Door, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" {
		return nil, errors.New("the base URL must be an absolute URL")
	}
	d := &Door{config: c, host: strings.ToLower(base.Hostname())}
	for _, text := range append([]string{base.Scheme + "://" + base.Host}, c.Origins...) {
		o, ok := parseOrigin(text)
		if !ok {
			return nil, errors.New("MCP_ALLOWED_ORIGINS must list origins such as https://app.example.com")
		}
		d.origins = append(d.origins, o.String())
	}
	server, err := newServer(c)
	if err != nil {
		return nil, err
	}
	d.next = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMessage,
		// Without this option the SDK does not cancel a handler whose caller has disconnected. An
		// append ignores the cancellation.
		PropagateRequestCancellation: true,
		// The SDK's protection would refuse every request that a proxy on this machine forwards.
		DisableLocalhostProtection: true,
	})
	return d, nil
}
