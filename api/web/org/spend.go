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

// periods are the lengths in days that the pages about spending offer. That of the overview is the
// default.
var periods = []int{7, overviewDays, 90}

// spending is the data of the pages about spending: of an organization, or of one agent.
type spending struct {
	query.Spending
	Agent      *query.AgentSpent // nil: of the organization
	Path       string
	Days       int
	Periods    []web.Chip
	Sums       sums
	Rows       []dayRow
	SpendChart template.HTML
	Chart      template.HTML
	Newest     []query.ListedDecision // of the agent
	Bars       []bars
}

// sums are the four numbers of a period. Stopped counts what was denied or sent to review.
type sums struct{ Decisions, SpentUSD, Stopped, Violations change }

// change is a number with how it differs from the number of the period before.
type change struct{ Now, Before string }

// Word compares the number with that of the period before, as the beginning of a sentence that
// ends with the period.
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

// Told reports whether the number of the period before adds something to Word.
func (c change) Told() bool { return strings.Trim(c.Before, "0.") != "" && c.Now != c.Before }

// dayRow is a day in the table under the charts. Href is the list of its decisions, or empty.
type dayRow struct {
	projections.Spent
	Href string
}

// bars is a table of sums of which each row has a bar and leads to its list.
type bars struct {
	Title, Head, None string
	Money             bool // the bars show dollars, otherwise decisions
	Rows              []bar
}

// bar is a row of such a table.
type bar struct {
	Name             string // as an agent or a caller wrote it, if Quoted
	Quoted           bool
	Href, List       string // the page about it, and its decisions; may be empty
	Decisions        int64
	Denied, Reviewed int64
	SpentUSD         string
	Share            int // 0 to 100, of the largest row
}

func (r *Room) showSpend(v *web.Visit) (web.View, error) {
	data, err := r.spending(v, "/spend", "")
	return web.View{Template: "spend.html", Data: data}, err
}

// showAgent shows the sums of one agent, which the address names by its data key, so that no
// address holds a name that may be erased.
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
	erased := agent != "" && name == "" // no filter selects the decisions of the agent
	if erased {
		for i := range data.Rows {
			data.Rows[i].Href = ""
		}
	}
	if data.Total.Decisions() == 0 {
		return data, nil // there is nothing to draw or to list
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
	data.Bars = append(data.Bars, targetBars(data.Spending, filter, parts.Payees, bars{Title: "By payee", Head: "Payee", None: "No payment was asked for.", Money: data.Total.SpentUSD != "0"}),
		targetBars(data.Spending, filter, parts.Tools, bars{Title: "By tool", Head: "Tool", None: "No tool call was asked for."}), ruleBars(data.Spending, filter, parts.Rules))
	if erased {
		for _, table := range data.Bars {
			for i := range table.Rows {
				table.Rows[i].Href, table.Rows[i].List = "", ""
			}
		}
	}
	return data, nil
}

// sumsOf compares the four numbers of a period with those of the period before.
func sumsOf(s query.Spending) sums {
	numbers := func(now, before int64) change {
		return change{strconv.FormatInt(now, 10), strconv.FormatInt(before, 10)}
	}
	return sums{Decisions: numbers(s.Total.Decisions(), s.Before.Decisions()), SpentUSD: change{dollars(s.Total.SpentUSD), dollars(s.Before.SpentUSD)},
		Stopped: numbers(s.Total.Denied+s.Total.Reviewed, s.Before.Denied+s.Before.Reviewed), Violations: numbers(s.Total.Violations, s.Before.Violations)}
}

// dollars rounds an exact decimal to cents, or to millionths if it is less than a dollar and no
// number of cents: a single call of an API may cost less than a cent.
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

// inPeriod returns the address of the list of what a filter selects in a period.
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

// charts draws the dollars and the decisions of days. There is no chart of dollars if none were
// spent.
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
	b := bars{Title: "By agent", Head: "Agent", None: "No agent asked for anything.", Money: s.Total.SpentUSD != "0"}
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
	b := bars{Title: "By rule", Head: "Rule", None: "No rule found anything."}
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

// shared sets the length of each bar.
func (b bars) shared() bars {
	value := func(r bar) float64 {
		if !b.Money {
			return float64(r.Decisions)
		}
		usd, _ := strconv.ParseFloat(r.SpentUSD, 64) // dollars made it
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

// Allowed returns the US dollars that were allowed in the period.
func (s spending) Allowed() string { return dollars(s.Total.AllowedUSD) }

// Period returns the address of the page for another period.
func (s spending) Period(days int) string {
	return web.Address(s.Path, url.Values{"days": {strconv.Itoa(days)}})
}
