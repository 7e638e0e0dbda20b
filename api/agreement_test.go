package api

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/policy"
)

// claim is a service's description in one surface. An empty field means that the surface does not
// contain it.
type claim struct {
	path, price string          // price in US dollars, such as "0.01"
	members     map[string]bool // members of the request, and whether each is required
}

// surface is a document or page that names services.
type surface struct {
	name   string
	prices bool // whether it contains prices
	claims map[string]claim
}

// TestEverySurfaceNamesTheSameServices compares REST, OpenAPI, the 402, MCP, the price list, the
// manifest, both cards, the skills, llms.txt and the pages with the declarations. All must have
// the same services, at the same paths, for the same prices, with the same members. As a
// counter-check, each surface with prices must differ from declarations in which a price was
// changed.
func TestEverySurfaceNamesTheSameServices(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{dev: true})
	declared := map[string]claim{}
	for _, s := range services.List() {
		o := n.server.table.Find(s.Operation)
		whole, _ := plainJSON(t, o.Schema.Document).(map[string]any)
		declared[s.Operation] = claim{op.ServicePath(s), op.USD(s.PriceCents), withoutKey(membersOf(whole, nil))}
	}
	surfaces := n.surfaces()
	for _, s := range surfaces {
		for _, fault := range disagreements(declared, s) {
			t.Errorf("%s: %s", s.name, fault)
		}
	}
	changed := maps.Clone(declared)
	one := services.List()[3].Operation
	c := changed[one]
	c.price += "9"
	changed[one] = c
	for _, s := range surfaces {
		if faults := disagreements(changed, s); (len(faults) == 1) != s.prices {
			t.Errorf("%s names prices: %t, and a changed one makes %v", s.name, s.prices, faults)
		}
	}
}

// disagreements lists the differences between a surface and the declarations.
func disagreements(declared map[string]claim, s surface) (faults []string) {
	for _, operation := range slices.Sorted(maps.Keys(declared)) {
		want, said := declared[operation], s.claims[operation]
		if _, named := s.claims[operation]; !named {
			faults = append(faults, operation+" is not named")
			continue
		}
		if said.path != "" && said.path != want.path {
			faults = append(faults, fmt.Sprintf("%s is at %s, want %s", operation, said.path, want.path))
		}
		if (said.price != "" || s.prices) && said.price != want.price {
			faults = append(faults, fmt.Sprintf("%s costs %q, want %s", operation, said.price, want.price))
		}
		if said.members != nil && !maps.Equal(said.members, want.members) {
			faults = append(faults, operation+" takes other members")
		}
	}
	for operation := range s.claims {
		if _, known := declared[operation]; !known {
			faults = append(faults, operation+" is no service")
		}
	}
	return faults
}

// surfaces parses all surfaces as their readers do.
func (n *node) surfaces() []surface {
	return slices.Concat([]surface{n.demandsSay(), n.openAPISays(), n.toolsSay(), n.priceListSays(), n.manifestSays()},
		n.cardsSay(), []surface{n.llmsSays(), n.toolPagesSay(), n.pricePageSays(), n.skillsSay()})
}

// membersIn returns the members of a schema that is a complete document.
func (n *node) membersIn(schema any) map[string]bool {
	whole, _ := plainJSON(n.t, schema).(map[string]any)
	definitions, _ := whole["$defs"].(map[string]any)
	return withoutKey(membersOf(whole, definitions))
}

// amountUSD converts atomic units of a dollar stablecoin to dollars.
func amountUSD(units string) string {
	var n int
	_, _ = fmt.Sscan(units, &n)
	return op.USD(n / 10_000)
}

func (n *node) demandsSay() surface {
	s := surface{"402", true, map[string]claim{}}
	for _, service := range services.List() {
		required := n.unpaid(op.ServicePath(service))
		s.claims[service.Operation] = claim{path: strings.TrimPrefix(required.Resource.URL, n.url), price: amountUSD(required.Accepts[0].Amount)}
	}
	return s
}

func (n *node) openAPISays() surface {
	s := surface{"OpenAPI", true, map[string]claim{}}
	d := n.openAPIDocument()
	for _, o := range d.operations() {
		info, priced := o.operation["x-payment-info"].(map[string]any)
		if !priced {
			continue
		}
		price, _ := info["price"].(map[string]any)
		request := d.inlined(d.at("paths", o.path, "post", "requestBody", "content", "application/json", "schema"))
		s.claims[fmt.Sprint(o.operation["operationId"])] = claim{o.path, fmt.Sprint(price["amount"]), n.membersIn(request)}
	}
	return s
}

func (n *node) toolsSay() surface {
	s := surface{"MCP", true, map[string]claim{}}
	session := n.dial(eras[0])
	for tool, err := range session.Tools(n.t.Context(), &sdk.ListToolsParams{}) {
		if err != nil {
			n.t.Fatal(err)
		}
		price, priced := tool.Meta["x402/price"].(map[string]any)
		if !priced {
			continue
		}
		s.claims[tool.Name] = claim{price: fmt.Sprint(price["usd"]), members: n.membersIn(tool.InputSchema)}
	}
	return s
}

// withoutKey removes the idempotency key, which over HTTP is a header of most services, and over
// MCP a member of every tool.
func withoutKey(members map[string]bool) map[string]bool {
	delete(members, "/idempotencyKey")
	return members
}

func (n *node) priceListSays() surface {
	s := surface{"/api/pricing", true, map[string]claim{}}
	var list services.Pricing
	n.get("/api/pricing").decode(n.t, &list)
	for _, p := range list.Services {
		s.claims[p.OperationID] = claim{path: p.Path, price: p.PriceUSD}
	}
	return s
}

func (n *node) manifestSays() surface {
	s := surface{"manifest", true, map[string]claim{}}
	var m discovery.Manifest
	n.get("/.well-known/x402").decode(n.t, &m)
	for _, item := range m.Items {
		path := strings.TrimPrefix(item.Resource.URL, n.url)
		i := slices.IndexFunc(n.server.table, func(o *op.Operation) bool { return o.Path == path && o.Service != nil })
		if i < 0 {
			continue // a product, not a service
		}
		s.claims[n.server.table[i].ID] = claim{path, amountUSD(item.Accepts[0].Amount), n.membersIn(item.Input)}
	}
	return s
}

func (n *node) cardsSay() []surface {
	server, agent := surface{"server card", false, map[string]claim{}}, surface{"agent card", false, map[string]claim{}}
	var tools discovery.ServerCard
	n.get("/.well-known/mcp/server-card.json").decode(n.t, &tools)
	for _, tool := range tools.Tools {
		if o := n.server.table.Find(tool.Name); o != nil && o.Service != nil {
			server.claims[tool.Name] = claim{members: n.membersIn(tool.Input)}
		}
	}
	var card discovery.AgentCard
	n.get("/.well-known/agent-card.json").decode(n.t, &card)
	for _, skill := range card.Skills {
		agent.claims[skill.ID] = claim{}
	}
	return []surface{server, agent}
}

var llmsLine = regexp.MustCompile(`(?m)^- \[([a-z0-9_]+)\]\(\S+/tools/([a-z0-9_]+)\.md\): POST (\S+), \$([0-9.]+) per call`)

func (n *node) llmsSays() surface {
	s := surface{"llms.txt", true, map[string]claim{}}
	for _, m := range llmsLine.FindAllSubmatch(n.get("/llms.txt").body, -1) {
		if !bytes.Equal(m[1], m[2]) {
			n.t.Errorf("llms.txt links %s to %s", m[1], m[2])
		}
		s.claims[string(m[1])] = claim{path: string(m[3]), price: string(m[4])}
	}
	return s
}

var (
	pagePath  = regexp.MustCompile("\\| REST \\| `POST (\\S+)` \\|")
	pagePrice = regexp.MustCompile(`\| price \| \$([0-9.]+) per`)
	formPrice = regexp.MustCompile(`An answer costs \$([0-9.]+),`)
	listLine  = regexp.MustCompile(`(?s)<tr id="([a-z0-9_]+)">.*?<code class="quiet">([^<]+)</code>.*?class="amount"[^>]*>([0-9.]+)<`)
)

func (n *node) toolPagesSay() surface {
	s := surface{"pages of services", true, map[string]claim{}}
	for _, service := range services.List() {
		text := n.get("/tools/" + service.Operation + ".md").body
		form := n.send(http.MethodGet, "/tools/"+service.Operation, "", "Accept", "text/html").body
		path, price, again := pagePath.FindSubmatch(text), pagePrice.FindSubmatch(text), formPrice.FindSubmatch(form)
		if path == nil || price == nil || again == nil || !bytes.Equal(price[1], again[1]) {
			n.t.Errorf("the page of %s says %q %q %q", service.Operation, path, price, again)
			continue
		}
		s.claims[service.Operation] = claim{path: string(path[1]), price: string(price[1])}
	}
	return s
}

func (n *node) pricePageSays() surface {
	s := surface{"/pricing", true, map[string]claim{}}
	page := n.send(http.MethodGet, "/pricing", "", "Accept", "text/html").body
	for _, m := range listLine.FindAllSubmatch(page, -1) {
		s.claims[string(m[1])] = claim{path: html.UnescapeString(string(m[2])), price: string(m[3])}
	}
	return s
}

var calledPath = regexp.MustCompile(`/api/agent-services/[a-z0-9/-]+`)

// skillsSay checks that the services in the skills exist. Skills may omit services.
func (n *node) skillsSay() surface {
	s := surface{"skills", false, map[string]claim{}}
	for _, service := range services.List() {
		s.claims[service.Operation] = claim{}
	}
	var index discovery.SkillIndex
	n.get("/.well-known/agent-skills/index.json").decode(n.t, &index)
	for _, skill := range index.Skills {
		text := n.get(strings.TrimPrefix(skill.URL, n.url)).body
		for _, path := range calledPath.FindAll(text, -1) {
			if !slices.ContainsFunc(services.List(), func(service policy.Service) bool { return op.ServicePath(service) == string(path) }) {
				s.claims["skill "+skill.Name] = claim{}
			}
		}
	}
	return s
}
