package portfoliorisk

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// read reads and checks an input.
func read(in Input) (*portfolio, error) {
	var c money.Check
	p := &portfolio{perYear: float64(money.Or(in.PeriodsPerYear, 252)), confidence: money.Or(in.ConfidenceLevel, 0.95), benchmark: in.BenchmarkReturns}
	c.Length("/positions", len(in.Positions), 1, maxPositions)
	if c.Err() != nil {
		return nil, c.Err()
	}
	p.readPositions(&c, in.Positions)
	p.readWeights(&c, in.Positions)
	p.readReturns(&c, in)
	rate := money.Or(in.RiskFreeRate, 0)
	c.Between("/riskFreeRate", rate, minRate, maxRate)
	c.Between("/periodsPerYear", p.perYear, 1, maxPeriods)
	c.Between("/confidenceLevel", p.confidence, minLevel, maxLevel)
	p.riskFree = rate / p.perYear
	return p, c.Err()
}

// readPositions checks symbol and sector of each position.
func (p *portfolio) readPositions(c *money.Check, positions []Position) {
	seen := map[string]bool{}
	text := func(path, s string, limit int) {
		if s == "" {
			c.Refuse("out_of_range", path, path[1:]+" must not be empty")
		}
		if utf8.RuneCountInString(s) > limit {
			c.Refuse("too_long", path, fmt.Sprintf("%s must have at most %d characters", path[1:], limit))
		}
	}
	for i, x := range positions {
		path := fmt.Sprintf("/positions/%d", i)
		text(path+"/symbol", x.Symbol, maxSymbol)
		if seen[x.Symbol] {
			c.Refuse("inconsistent_input", path+"/symbol", path[1:]+"/symbol must not be that of an earlier position")
		}
		seen[x.Symbol] = true
		sector := money.Or(x.Sector, unclassified)
		text(path+"/sector", sector, maxSector)
		p.symbols, p.names = append(p.symbols, x.Symbol), append(p.names, sector)
	}
}

// readWeights reads weights, or computes them from market values.
func (p *portfolio) readWeights(c *money.Check, positions []Position) {
	byValue := positions[0].MarketValue != nil
	var total money.Sum
	var gross money.Compensated
	for i, x := range positions {
		path := fmt.Sprintf("/positions/%d", i)
		switch {
		case x.Weight != nil && x.MarketValue != nil:
			c.Exclusive(path+"/marketValue", "weight")
		case x.Weight == nil && x.MarketValue == nil:
			c.Missing(path + "/weight")
		case (x.MarketValue != nil) != byValue:
			c.Refuse("inconsistent_input", path, path[1:]+" must have weight or marketValue, the same one as the first position")
		}
		c.Between(path+"/weight", money.Or(x.Weight, 0), -maxWeight, maxWeight)
		c.Between(path+"/marketValue", money.Or(x.MarketValue, 0), -maxValue, maxValue)
		w := money.Or(x.Weight, money.Or(x.MarketValue, 0))
		total.Add(w)
		p.weights = append(p.weights, w)
	}
	sum := total.Float()
	total.Add(-1)
	if byValue && !(sum > 0) {
		c.Refuse("inconsistent_input", "/positions", "positions must have market values with a sum above 0")
	}
	if !byValue && !(math.Abs(total.Float()) <= sumOfWeights) {
		c.Refuse("weights_do_not_sum_to_one", "/positions", "positions must have weights with a sum of 1")
	}
	for i := range p.weights {
		if byValue {
			p.weights[i] /= sum
		}
		gross.Add(math.Abs(p.weights[i]))
	}
	p.gross = gross.Float()
}

// readReturns checks the returns, and computes those of the portfolio.
func (p *portfolio) readReturns(c *money.Check, in Input) {
	series := func(path string, x []float64) {
		c.Length(path, len(x), minReturns, maxReturns)
		for i, r := range x {
			if !(r >= minReturn && r <= maxReturn) {
				c.Between(fmt.Sprintf("%s/%d", path, i), r, minReturn, maxReturn)
			}
		}
	}
	with := 0
	for i, x := range in.Positions {
		if x.Returns != nil {
			with++
			series(fmt.Sprintf("/positions/%d/returns", i), x.Returns)
		}
	}
	if with > 0 && in.PortfolioReturns != nil {
		c.Exclusive("/portfolioReturns", "returns of positions")
	}
	for i, x := range in.Positions {
		if with > 0 && (x.Returns == nil || len(x.Returns) != len(in.Positions[0].Returns)) {
			c.Refuse("returns_incomplete", fmt.Sprintf("/positions/%d/returns", i), "positions must all have the same number of returns, or none")
		}
	}
	if in.PortfolioReturns != nil {
		series("/portfolioReturns", in.PortfolioReturns)
		p.returns = in.PortfolioReturns
	}
	if c.Err() == nil && with > 0 {
		p.combine(in.Positions)
	}
	if in.BenchmarkReturns != nil {
		series("/benchmarkReturns", in.BenchmarkReturns)
		if len(in.BenchmarkReturns) != len(p.returns) {
			c.Refuse("inconsistent_input", "/benchmarkReturns", "benchmarkReturns must have as many items as the returns of the portfolio")
		}
	}
}

// combine computes the portfolio's returns from those of the positions.
func (p *portfolio) combine(positions []Position) {
	p.returns = make([]float64, len(positions[0].Returns))
	for t := range p.returns {
		var sum money.Compensated
		for i, x := range positions {
			sum.Add(float64(p.weights[i] * x.Returns[t]))
		}
		p.returns[t] = sum.Float()
	}
	for _, x := range positions {
		p.assets = append(p.assets, x.Returns)
	}
}

// sectors sums the weights by sector, sorted with the largest first.
func (p *portfolio) sectors(out *Output) {
	index := map[string]int{}
	var sums []money.Compensated
	for i, name := range p.names {
		k, there := index[name]
		if !there {
			k = len(sums)
			index[name] = k
			sums = append(sums, money.Compensated{})
			out.Sectors = append(out.Sectors, Sector{Sector: name})
		}
		sums[k].Add(p.weights[i])
		out.Sectors[k].Holdings++
	}
	var gross, squares money.Compensated
	for k := range sums {
		gross.Add(math.Abs(sums[k].Float()))
	}
	for k := range sums {
		weight := sums[k].Float()
		out.Sectors[k].Weight = policy.Sig12(weight)
		squares.Add(math.Pow(weight/gross.Float(), 2))
	}
	out.SectorHHI = policy.Sig12(squares.Float())
	slices.SortFunc(out.Sectors, func(a, b Sector) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Sector, b.Sector))
	})
}

// findings returns the findings about risks and unusual numbers of a portfolio.
func (p *portfolio) findings(out *Output) []policy.Finding {
	found := out.Findings
	add := func(id, severity, path, message string) {
		found = append(found, policy.Finding{ID: id, Severity: severity, Path: path, Message: message})
	}
	short := false
	for i, w := range p.weights {
		short = short || w < 0
		if a := policy.Sig12(math.Abs(w) / p.gross); a > singleMedium {
			add("single_position_concentration", severity(a > singleHigh), fmt.Sprintf("/positions/%d", i), "One position is a large part of the exposure.")
		}
	}
	var gross money.Compensated
	for _, s := range out.Sectors {
		gross.Add(math.Abs(s.Weight))
	}
	for _, s := range out.Sectors {
		if a := policy.Sig12(math.Abs(s.Weight) / gross.Float()); a > sectorMedium && s.Sector != unclassified {
			found = append(found, policy.Finding{ID: "sector_concentration", Severity: severity(a > sectorHigh), Message: "One sector is a large part of the exposure.", Evidence: s.Sector})
		}
	}
	above := func(x *float64, limit float64) bool { return x != nil && *x > limit }
	if out.EffectiveHoldings < fewHoldings {
		add("few_holdings", "medium", "", "The portfolio is no broader than fewer than five equal holdings.")
	}
	if above(out.Volatility, highVolatility) {
		add("high_volatility", "high", "", "The volatility is above 30 % a year.")
	}
	if above(out.MaxDrawdown, deepDrawdown) {
		add("deep_drawdown", "high", "", "The portfolio has lost more than 30 % from a peak.")
	}
	if out.Sharpe != nil && *out.Sharpe < 0 {
		add("negative_sharpe", "medium", "", "The return is below the risk-free rate.")
	}
	switch n := out.Observations; {
	case n == 0:
		add("no_return_history", "medium", "", "Without returns only concentration is scored.")
	case n < shortHistory:
		add("insufficient_history", "medium", "", "Fewer than 30 observations say little about risk.")
	}
	if n := out.Observations; n > 0 && out.AnnualizedReturn == nil {
		add("annual_return_undefined", "medium", "", "The portfolio loses more than it has, or gains beyond any number: there is no annual return.")
	}
	if median := medianSize(p.returns); median > percentReturn {
		add("returns_look_like_percent", "medium", "", "Half of the returns are larger than 50 % a period; 2 % is written 0.02.")
	}
	if p.riskFree*p.perYear > percentRate {
		add("rate_looks_like_percent", "medium", "/riskFreeRate", "The risk-free rate is above 25 % a year; 3 % is written 0.03.")
	}
	if short {
		add("short_exposure", "medium", "", "There are short positions, whose loss has no limit.")
	}
	if p.gross > leverage {
		add("leverage", "medium", "", "The gross exposure is above the capital.")
	}
	return found
}

// medianSize returns the median of the absolute returns (the lower of two middle values), or 0 if
// there are none.
func medianSize(returns []float64) float64 {
	if len(returns) == 0 {
		return 0
	}
	sizes := make([]float64, len(returns))
	for i, r := range returns {
		sizes[i] = math.Abs(r)
	}
	slices.Sort(sizes)
	return sizes[(len(sizes)-1)/2]
}

func severity(high bool) string {
	if high {
		return "high"
	}
	return "medium"
}
