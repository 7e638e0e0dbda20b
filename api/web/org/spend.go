package org

import (
	"fmt"
	"html/template"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

// periods are the lengths in days that the spending pages offer. The default is overviewDays.
var periods = []int{7, overviewDays, 90}

// spending is the data of the spending page, of an organization or of one agent.
type spending struct {
	query.Spending
	Agent      *query.AgentSpent // nil on the page of the organization
	Path       string
	Days       int
	Periods    []web.Chip
	Sums       sums
	Rows       []dayRow
	SpendChart template.HTML
	Chart      template.HTML
	Newest     []query.ListedDecision // newest decisions of the agent
	Bars       []bars
}

// sums are the four numbers of a period. Stopped counts decisions that denied or required review.
type sums struct{ Decisions, SpentUSD, Stopped, Violations change }

// change is a number of a period, with the number of the previous period.
type change struct{ Now, Before string }

// Word compares the number with the previous period. The page appends the period to these words.
func (c change) Word() string {
	now, ok := new(big.Rat).SetString(c.Now)
	before, ok2 := new(big.Rat).SetString(c.Before)
	if !ok || !ok2 || now.Cmp(before) == 0 {
		return "The same as in"
	}
	if before.Sign() == 0 {
		return "Up from 0 in"
	}
	ratio := new(big.Rat).Quo(now, before)
	percent, _ := ratio.Sub(ratio, big.NewRat(1, 1)).Mul(ratio, big.NewRat(100, 1)).Float64()
	if percent < 0 {
		return fmt.Sprintf("Down %.0f %% from", max(-percent, 1))
	}
	return fmt.Sprintf("Up %.0f %% from", max(percent, 1))
}

// Told reports whether the page should show the previous number after Word: it differs and is not
// 0.
func (c change) Told() bool { return strings.Trim(c.Before, "0.") != "" && c.Now != c.Before }

// dayRow is one day in the table under the charts. Href links to its decisions; it may be empty.
type dayRow struct {
	projections.Spent
	Href string
}

// bars is a table of sums. Each row has a bar and a link to its decisions.
type bars struct {
	Title, Head, None string
	Money             bool // the bars show US dollars; otherwise they count decisions
	Rows              []bar
}

// bar is one row of the table.
type bar struct {
	Name             string // if Quoted is set, an agent or a caller wrote it
	Quoted           bool
	Href, List       string // page about the row, and list of its decisions; both may be empty
	Decisions        int64
	Denied, Reviewed int64
	SpentUSD         string
	Share            int // length of the bar in percent of the longest
}

func (r *Room) showSpend(v *web.Visit) (web.View, error) {
	data, err := r.spending(v, "/spend", "")
	return web.View{Template: "spend.html", Data: data}, err
}

// showAgent shows the sums of one agent. The address contains the id of the agent's data key
// instead of its name, because the name may be erased.
func (r *Room) showAgent(v *web.Visit) (web.View, error) {
	id := v.Vars["id"]
	data, err := r.spending(v, "/agents/"+id, id)
	if err != nil {
		return web.View{}, err
	}
	if data.Agent == nil {
		known, err := r.queries().Agent(v.Request.Context(), v.Principal, id)
		if err != nil {
			return web.View{}, err
		}
		data.Agent = &known
	}
	if data.Agent.Name != "" {
		page, err := r.queries().Search(v.Request.Context(), v.Principal, query.Filter{Agent: data.Agent.Name}, 10, "")
		if err != nil {
			return web.View{}, err
		}
		data.Newest = page.Items
	}
	return web.View{Template: "spend.html", Data: data}, nil
}

func (r *Room) spending(v *web.Visit, path, agent string) (data spending, err error) {
	days := overviewDays
	if text := v.Request.URL.Query().Get("days"); text != "" {
		i := slices.IndexFunc(periods, func(d int) bool { return text == strconv.Itoa(d) })
		if i < 0 {
			return data, policy.Refuse("invalid_enum", "/days", "days must be 7, 30 or 90")
		}
		days = periods[i]
	}
	data = spending{Path: path, Days: days}
	for _, d := range periods {
		data.Periods = append(data.Periods, web.Chip{Name: fmt.Sprintf("%d days", d), Href: data.Period(d), Current: d == days})
	}
	if data.Spending, err = r.queries().Spending(v.Request.Context(), v.Principal, days, agent); err != nil {
		return data, err
	}
	name := ""
	if agent != "" && len(data.Agents) > 0 {
		data.Agent, name = &data.Agents[0], data.Agents[0].Name
	}
	data.Sums = sumsOf(data.Spending)
	filter := query.Filter{Agent: name}
	data.Rows = dayRows(data.Spending.Days, filter)
	erased := agent != "" && name == "" // the name is erased, so no filter can select the agent's decisions
	if erased {
		for i := range data.Rows {
			data.Rows[i].Href = ""
		}
	}
	if data.Total.Decisions() == 0 {
		return data, nil // nothing to draw or to list
	}
	if data.SpendChart, data.Chart, err = charts(data.Rows); err != nil {
		return data, err
	}
	parts, err := r.queries().Breakdown(v.Request.Context(), v.Principal, data.Spending)
	if err != nil {
		return data, err
	}
	if agent == "" {
		data.Bars = append(data.Bars, agentBars(data.Spending))
	}
	data.Bars = append(data.Bars, targetBars(data.Spending, filter, parts.Payees, bars{Title: "By payee", Head: "Payee", None: "No payments were requested.", Money: data.Total.SpentUSD != "0"}),
		targetBars(data.Spending, filter, parts.Tools, bars{Title: "By tool", Head: "Tool", None: "No tool calls were requested."}), ruleBars(data.Spending, filter, parts.Rules))
	if erased {
		for _, table := range data.Bars {
			for i := range table.Rows {
				table.Rows[i].Href, table.Rows[i].List = "", ""
			}
		}
	}
	return data, nil
}

// sumsOf compares the four numbers of a period with the previous period.
func sumsOf(s query.Spending) sums {
	numbers := func(now, before int64) change {
		return change{strconv.FormatInt(now, 10), strconv.FormatInt(before, 10)}
	}
	return sums{Decisions: numbers(s.Total.Decisions(), s.Before.Decisions()), SpentUSD: change{dollars(s.Total.SpentUSD), dollars(s.Before.SpentUSD)},
		Stopped: numbers(s.Total.Denied+s.Total.Reviewed, s.Before.Denied+s.Before.Reviewed), Violations: numbers(s.Total.Violations, s.Before.Violations)}
}

// dollars rounds a decimal to cents. An amount below a dollar with fractions of a cent is rounded
// to millionths, because a call of an API may cost less than a cent.
func dollars(decimal string) string {
	usd, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return "0.00"
	}
	cents := usd.FloatString(2)
	if exact, _ := new(big.Rat).SetString(cents); usd.Cmp(exact) == 0 || usd.Cmp(big.NewRat(1, 1)) >= 0 {
		return cents
	}
	return strings.TrimRight(usd.FloatString(6), "0")
}

// inPeriod returns the address of the list of decisions that match a filter, from one day up to,
// but not including, another day.
func inPeriod(f query.Filter, from, until time.Time) string {
	f.From, f.To = from.Format(time.DateOnly), until.AddDate(0, 0, -1).Format(time.DateOnly)
	return "/decisions?" + f.Query().Encode()
}

func dayRows(days []projections.Spent, f query.Filter) []dayRow {
	rows := make([]dayRow, len(days))
	for i, d := range days {
		rows[i].Spent = d
		if d.Decisions() > 0 {
			rows[i].Href = inPeriod(f, d.Day, d.Day.AddDate(0, 0, 1))
		}
		rows[i].SpentUSD = dollars(d.SpentUSD)
	}
	return rows
}

// charts draws two charts by day: the dollars spent and the decisions. If nothing was spent, the
// chart of dollars is empty.
func charts(rows []dayRow) (dollars, decisions template.HTML, err error) {
	var labels, links []string
	var allowed, reviewed, denied, spent []float64
	sum := 0.0
	for _, d := range rows {
		usd, err := strconv.ParseFloat(d.SpentUSD, 64)
		if err != nil {
			return "", "", err
		}
		sum += usd
		labels, links, spent = append(labels, d.Day.Format("2 Jan")), append(links, d.Href), append(spent, usd)
		allowed, reviewed, denied = append(allowed, float64(d.Allowed)), append(reviewed, float64(d.Reviewed)), append(denied, float64(d.Denied))
	}
	drawn, err := plot.Decisions(labels, links, allowed, reviewed, denied)
	if err != nil || sum == 0 {
		return "", web.Trusted(drawn.SVG), err
	}
	money, err := plot.Spend(labels, links, spent)
	return web.Trusted(money.SVG), web.Trusted(drawn.SVG), err
}

func agentBars(s query.Spending) bars {
	b := bars{Title: "By agent", Head: "Agent", None: "No agent requested a decision.", Money: s.Total.SpentUSD != "0"}
	for _, a := range s.Agents {
		row := barOf(a.Spent)
		switch {
		case a.Agent == "":
			row.Name = "not named"
		case a.Name == "":
			row.Name, row.Href = "erased", "/agents/"+a.Agent
		default:
			row.Name, row.Quoted, row.Href = a.Name, true, "/agents/"+a.Agent
			row.List = inPeriod(query.Filter{Agent: a.Name}, s.From, s.Until)
		}
		b.Rows = append(b.Rows, row)
	}
	return b.shared()
}

func targetBars(s query.Spending, f query.Filter, targets []projections.Spent, b bars) bars {
	for _, t := range targets {
		row := barOf(t)
		row.Name, row.Quoted, f.Target, f.Protocol = t.Target, true, t.Target, t.Protocol
		row.List = inPeriod(f, s.From, s.Until)
		row.Href = row.List
		b.Rows = append(b.Rows, row)
	}
	return b.shared()
}

func ruleBars(s query.Spending, f query.Filter, rules []projections.Fired) bars {
	b := bars{Title: "By rule", Head: "Rule", None: "No rule had a finding."}
	for _, rule := range rules {
		f.Rule = rule.Rule
		list := inPeriod(f, s.From, s.Until)
		b.Rows = append(b.Rows, bar{Name: rule.Rule, Href: list, List: list, Decisions: rule.Decisions(), Denied: rule.Denied, Reviewed: rule.Reviewed, SpentUSD: "0.00"})
	}
	return b.shared()
}

func barOf(s projections.Spent) bar {
	return bar{Decisions: s.Decisions(), Denied: s.Denied, Reviewed: s.Reviewed, SpentUSD: dollars(s.SpentUSD)}
}

// shared sets the length of the bar in each row and returns the table. The longest bar belongs to
// the largest value.
func (b bars) shared() bars {
	value := func(r bar) float64 {
		if !b.Money {
			return float64(r.Decisions)
		}
		usd, _ := strconv.ParseFloat(r.SpentUSD, 64) // no error, because the function dollars wrote the text
		return usd
	}
	most := 0.0
	for _, r := range b.Rows {
		most = max(most, value(r))
	}
	for i, r := range b.Rows {
		if most > 0 {
			b.Rows[i].Share = int(100 * value(r) / most)
		}
	}
	return b
}

// Allowed returns the sum of the payments that were allowed in the period, in US dollars.
func (s spending) Allowed() string { return dollars(s.Total.AllowedUSD) }

// Period returns the address of this page for a period of the given number of days.
func (s spending) Period(days int) string {
	return web.Address(s.Path, url.Values{"days": {strconv.Itoa(days)}})
}
