package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newServer returns the SDK's server with the tools, resources and prompts.
func newServer(c Config) (*sdk.Server, error) {
	server := sdk.NewServer(
		&sdk.Implementation{Name: c.Name, Title: c.Title, Version: c.Version, WebsiteURL: c.Website},
		&sdk.ServerOptions{
			Instructions: c.Instructions,
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{},
				Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{}},
			SetCacheable: func(_ context.Context, req sdk.Request, kept *sdk.Cacheable) {
				if _, reads := req.GetParams().(*sdk.ReadResourceParams); !reads {
					kept.TTLMs, kept.CacheScope = ttl, "public"
				}
			},
		})
	// recovering must be the outermost middleware. The SDK runs handlers in its own goroutines,
	// where a panic would end the process.
	server.AddReceivingMiddleware(recovering(c.Panicked), onePage, knownNames(c))
	for _, t := range c.Tools {
		if err := t.add(server); err != nil {
			return nil, err
		}
	}
	for _, r := range c.Resources {
		r.add(server)
	}
	for _, p := range c.Prompts {
		p.add(server)
	}
	return server, nil
}

func recovering(panicked func(context.Context, any)) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (_ sdk.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					panicked(exchangeOf(ctx).request.Context(), p)
					err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
				}
			}()
			return next(ctx, method, req)
		}
	}
}

// onePage refuses cursors. Every list has one page, and the SDK fails on cursors that it did not
// create.
func onePage(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		cursor := ""
		switch p := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			if p != nil {
				cursor = p.Cursor
			}
		case *sdk.ListResourcesParams:
			if p != nil {
				cursor = p.Cursor
			}
		case *sdk.ListResourceTemplatesParams:
			if p != nil {
				cursor = p.Cursor
			}
		case *sdk.ListPromptsParams:
			if p != nil {
				cursor = p.Cursor
			}
		}
		if cursor != "" {
			return nil, exchangeOf(ctx).invalid("unknown cursor")
		}
		return next(ctx, method, req)
	}
}

// knownNames answers an unknown tool, prompt or resource with our own error.
func knownNames(c Config) sdk.Middleware {
	tools, prompts := map[string]bool{}, map[string]bool{}
	for _, t := range c.Tools {
		tools[t.Name] = true
	}
	for _, p := range c.Prompts {
		prompts[p.Name] = true
	}
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch p := req.GetParams().(type) {
			case *sdk.CallToolParamsRaw:
				if !tools[p.Name] {
					return nil, exchangeOf(ctx).invalid("unknown tool")
				}
			case *sdk.GetPromptParams:
				if !prompts[p.Name] {
					return nil, exchangeOf(ctx).invalid("unknown prompt")
				}
			case *sdk.ReadResourceParams:
				result, err := next(ctx, method, req)
				var failed *jsonrpc.Error
				if errors.As(err, &failed) && failed.Code == jsonrpc.CodeInvalidParams {
					return nil, exchangeOf(ctx).notFound(p.URI)
				}
				return result, err
			}
			return next(ctx, method, req)
		}
	}
}

// add registers the tool without the SDK's generic wrapper. The wrapper would validate the
// arguments before the service could ask for payment.
func (t Tool) add(server *sdk.Server) (err error) {
	defer func() { // the SDK panics on an invalid declaration
		if p := recover(); p != nil {
			err = fmt.Errorf("MCP tool %s: %v", t.Name, p)
		}
	}()
	no := false
	declared := &sdk.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: json.RawMessage(t.Input),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: true,
			DestructiveHint: &no, OpenWorldHint: &no},
	}
	if t.Output != nil {
		declared.OutputSchema = json.RawMessage(t.Output)
	}
	if t.PriceUSD != "" {
		declared.Meta = sdk.Meta{"x402/price": map[string]string{"usd": t.PriceUSD}}
	}
	server.AddTool(declared, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		e := exchangeOf(ctx)
		arguments := jsontext.Value(req.Params.Arguments)
		if len(arguments) == 0 {
			arguments = jsontext.Value("{}")
		}
		return t.Call(ctx, Call{Request: e.request, Arguments: arguments, Payment: e.payment}).asSDK()
	})
	return nil
}

// asSDK converts the result for the SDK. It refuses a body that is not JSON, because the SDK could
// not send it and the caller would wait forever.
func (r Result) asSDK() (*sdk.CallToolResult, error) {
	if !jsontext.Value(r.Body).IsValid() {
		return nil, errors.New("the result is not JSON")
	}
	result := &sdk.CallToolResult{Meta: r.Meta, IsError: r.Failed, Content: []sdk.Content{&sdk.TextContent{Text: string(r.Body)}}}
	if r.Structured {
		result.StructuredContent = json.RawMessage(r.Body)
	}
	return result, nil
}

func (r Resource) add(server *sdk.Server) {
	before, _, _ := strings.Cut(r.URI, "{")
	read := func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		e := exchangeOf(ctx)
		variable := strings.TrimPrefix(req.Params.URI, before)
		text, err := r.Read(ctx, e.request, variable)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil, e.notFound(req.Params.URI)
		case err != nil:
			e.said = ErrUnavailable.Error()
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError}
		}
		kept := sdk.Cacheable{CacheScope: "private"}
		if r.Public {
			kept = sdk.Cacheable{TTLMs: ttl, CacheScope: "public"}
		}
		return &sdk.ReadResourceResult{Cacheable: kept, Contents: []*sdk.ResourceContents{{
			URI: req.Params.URI, MIMEType: r.Media, Text: text}}}, nil
	}
	if r.Listed {
		server.AddResource(&sdk.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.Media}, read)
		return
	}
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: r.URI, Name: r.Name, Title: r.Title,
		Description: r.Description, MIMEType: r.Media}, read)
}

func (p Prompt) add(server *sdk.Server) {
	declared := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		declared.Arguments = append(declared.Arguments, &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	server.AddPrompt(declared, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		for _, a := range p.Arguments {
			if a.Required && req.Params.Arguments[a.Name] == "" {
				return nil, exchangeOf(ctx).invalid("argument " + a.Name + " is required")
			}
		}
		return &sdk.GetPromptResult{Description: p.Description, Messages: []*sdk.PromptMessage{{
			Role: "user", Content: &sdk.TextContent{Text: p.Text(req.Params.Arguments)}}}}, nil
	})
}

// exchange is the data of one request that the SDK processes.
type exchange struct {
	request *http.Request
	payment jsontext.Value
	said    string // text of the error, if this package wrote it
}

type contextKey int

const exchangeKey contextKey = 0

func exchangeOf(ctx context.Context) *exchange {
	return ctx.Value(exchangeKey).(*exchange)
}

// notFound returns the error for a resource. The SDK's own error quotes the URI in Go syntax,
// which may be invalid JSON, so that the SDK could send no answer.
func (e *exchange) notFound(uri string) error {
	e.said = "resource not found"
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.said, Data: data}
}

// invalid returns an error that is the caller's fault.
func (e *exchange) invalid(text string) error {
	e.said = text
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}
