// Package mcp is an endpoint of the Model Context Protocol: streamable HTTP on one path, POST only,
// without sessions, each answer one JSON text. It supports both generations of the protocol:
// 2026-07-28, in which every request describes itself (in _meta and in headers that repeat it), and
// 2024-11-05 to 2025-11-25, which begin with initialize. The official SDK implements the protocol.
// In front of it the door refuses, in this order:
//
//	Host        not this service: a page may rebind its name to it    403
//	Origin      a page of an origin that is not allowed               403
//	method      other than POST                                       405
//	body        too large, not JSON                                   413, 415
//	message     not strict JSON, not JSON-RPC 2.0                     400  -32700, -32600
//	batch       after 2025-03-26, empty, or too long                  400  -32600
//	version     a protocol version that is not supported              400  -32022
//	credential  one that was sent and is not valid                    401
//
// After the SDK has answered, the door rewrites every error: it keeps the code of the protocol and
// replaces the text by one of ours, which never repeats the caller's.
//
// The package knows the protocol and nothing else of countersign. Config has the tools, resources
// and prompts with what they do.
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

// Versions lists the supported versions of the protocol, the newest first.
func Versions() []string {
	versions := slices.Sorted(slices.Values(sdk.SupportedProtocolVersions()))
	slices.Reverse(versions)
	return versions
}

// Config has what a door needs.
type Config struct {
	Name, Title, Version, Website string // of the server, for initialize
	Instructions                  string // for the model that uses it
	BaseURL                       string // its host and origin are always allowed
	Loopback                      bool   // the listener is on a loopback address: every loopback name is allowed
	Origins                       []string
	// Admit reports whether the door may go on with a request: its credential, if it has one, is
	// valid. Otherwise Admit has answered the request.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Compute waits for a slot to read a message of a number of bytes, and returns the function
	// that frees it. Unread answers its error.
	Compute func(ctx context.Context, octets int) (done func(), err error)
	// Unread returns the status and the text for a body that could not be read.
	Unread    func(http.Header, error) (status int, text string)
	Panicked  func(ctx context.Context, value any)
	Tools     []Tool
	Resources []Resource
	Prompts   []Prompt
}

// Tool is a function that a model may call.
type Tool struct {
	Name, Title, Description string
	Input, Output            jsontext.Value // JSON Schemas of type object, as text, since every list contains them
	PriceUSD                 string         // "0.01"; empty if it is free
	ReadOnly                 bool           // it changes nothing
	TakesNUL                 string         // the argument whose text may contain an escaped NUL, which is read as U+FFFD
	Call                     func(context.Context, Call) Result
}

// Call is one call of a tool.
type Call struct {
	Request   *http.Request  // the HTTP request that carried it; its headers have the caller's credential
	Arguments jsontext.Value // an object, if the caller follows the schema
	Payment   jsontext.Value // _meta["x402/payment"]; nil if there is none
}

// Result is the result of a tool call.
type Result struct {
	Body       []byte // JSON; always sent as text
	Structured bool   // Body is also sent as structured content
	Failed     bool   // it is an error that the model should read
	Meta       map[string]any
}

// Resource is a text to read. If its URI ends with a variable in braces, it is one text for each
// value.
type Resource struct {
	URI, Name, Title, Description, Media string
	Listed                               bool // it is listed by itself; otherwise as a template
	Public                               bool // it is the same for every caller and may be cached for ttl
	// Read returns the text. It returns ErrNotFound if the resource does not exist or the caller
	// may not see it.
	Read func(ctx context.Context, r *http.Request, variable string) (string, error)
}

// ErrNotFound is the error of a resource that does not exist, or that the caller may not see. Both
// get the same answer, so that only the owner learns that it exists.
var ErrNotFound = errors.New("unknown resource")

// ErrUnavailable is the error of a resource that cannot be read now.
var ErrUnavailable = errors.New("temporarily unavailable")

// Prompt is a text that a person can begin a conversation with.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	Text                     func(arguments map[string]string) string
}

// Argument is a value that a person enters for a prompt.
type Argument struct {
	Name, Description string
	Required          bool
}

// Door answers MCP requests at one path.
type Door struct {
	config  Config
	host    string // of the base URL
	origins []string
	next    http.Handler
}

// New makes a door. All its requests share one server of the SDK.
func New(c Config) (*Door, error) {
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" {
		return nil, errors.New("the base URL is no absolute URL")
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
		// The SDK cancels a handler whose caller has disconnected only with this option. An append
		// detaches itself from the cancellation.
		PropagateRequestCancellation: true,
		// The protection of the SDK would refuse every request that a proxy on this machine
		// forwards.
		DisableLocalhostProtection: true,
	})
	return d, nil
}
