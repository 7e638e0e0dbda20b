// Package mcp is the door for the Model Context Protocol: streamable HTTP on one
// path, POST only, without sessions, each answer one JSON text. It speaks both
// eras: 2026-07-28, where every request says for itself what it is (_meta and the
// headers that mirror it), and 2024-11-05 to 2025-11-25, which begin with
// initialize. The protocol itself is the official SDK's; in front of it stands a
// handler that refuses, in this order,
//
//	Host        not ours: a page that rebinds its name to us          403
//	Origin      a page of somebody else's                             403
//	method      other than POST                                       405
//	body        too large, not JSON                                   413, 415
//	message     not strict JSON, not JSON-RPC 2.0                     400  -32700, -32600
//	batch       after 2025-03-26, empty, or too long                  400  -32600
//	version     a protocol version nobody here speaks                 400  -32022
//	credential  one that is there and bad                             401
//
// and behind it one that writes every error again: with the code of the protocol,
// in words of ours, never with the caller's.
//
// The package knows the protocol and nothing of countersign: what the tools,
// resources and prompts are and do, it is told.
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

// Versions are those of the protocol that are spoken, the newest first.
func Versions() []string {
	versions := slices.Sorted(slices.Values(sdk.SupportedProtocolVersions()))
	slices.Reverse(versions)
	return versions
}

// Config is what a door is told.
type Config struct {
	Name, Title, Version, Website string // how the server introduces itself
	Instructions                  string // for the model that uses it
	BaseURL                       string // whose host and origin are the own ones
	Loopback                      bool   // the listener is: every loopback name is an own one
	Origins                       []string
	// Admit lets a request pass whose credential, if it has one, is good. It has
	// answered the others.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Compute waits for a place to read a message of so many octets, and returns the
	// function that leaves it. Its error is answered as Unread says.
	Compute func(ctx context.Context, octets int) (done func(), err error)
	// Unread is the status and the text for a body whose reading failed.
	Unread    func(http.Header, error) (status int, text string)
	Panicked  func(ctx context.Context, value any)
	Tools     []Tool
	Resources []Resource
	Prompts   []Prompt
}

// Tool is something a model may call.
type Tool struct {
	Name, Title, Description string
	Input, Output            jsontext.Value // JSON Schemas of type object, as text: they are sent with every list
	PriceUSD                 string         // "0.01"; empty where it is free
	ReadOnly                 bool           // changes nothing
	TakesNUL                 string         // the argument whose text may hold an escaped NUL, read as U+FFFD
	Call                     func(context.Context, Call) Result
}

// Call is one call of a tool, as it was sent.
type Call struct {
	Request   *http.Request  // that brought it: who calls is in its headers
	Arguments jsontext.Value // an object, if the caller keeps to the schema
	Payment   jsontext.Value // _meta["x402/payment"]; nil without one
}

// Result is what a tool answers.
type Result struct {
	Body       []byte // JSON; always there as text
	Structured bool   // and as structured content
	Failed     bool   // is an error for the model to read
	Meta       map[string]any
}

// Resource is a text to read: one, or with a variable in braces at the end of its
// URI as many as there are values.
type Resource struct {
	URI, Name, Title, Description, Media string
	Listed                               bool // a resource of its own; else it is shown as a template
	Public                               bool // the same for everybody, and for five minutes
	// Read returns the text. For what is not there, or not the caller's to see, it
	// returns ErrNotFound.
	Read func(ctx context.Context, r *http.Request, variable string) (string, error)
}

// ErrNotFound is a resource nobody but its owner knows to exist.
var ErrNotFound = errors.New("unknown resource")

// ErrUnavailable is a resource that cannot be read now.
var ErrUnavailable = errors.New("temporarily unavailable")

// Prompt is a text for a person to start with.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	Text                     func(arguments map[string]string) string
}

// Argument is what a person fills into a prompt.
type Argument struct {
	Name, Description string
	Required          bool
}

// Door answers MCP requests.
type Door struct {
	config  Config
	host    string // of the base URL
	origins []string
	next    http.Handler
}

// New opens a door. There is one server behind it for all requests.
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
		// The SDK ends a handler when its caller has gone only if told to. Whatever
		// appends detaches itself from that.
		PropagateRequestCancellation: true,
		// Its own guard refuses every request that a proxy on this machine passes on.
		DisableLocalhostProtection: true,
	})
	return d, nil
}
