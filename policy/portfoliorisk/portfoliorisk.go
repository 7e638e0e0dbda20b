// Package portfoliorisk measures concentration and risk of a portfolio, and scores it from 0 to
// 100.
//
// The portfolio's return of a period is the sum of weight times return of its positions, which are
// rebalanced every period. Volatility is the sample standard deviation times the root of the
// periods per year. The Sharpe ratio is that of Sharpe 1994 ("The Sharpe Ratio"), the Sortino
// ratio that of Sortino and Price 1994, and quantiles are of type 7 of Hyndman and Fan 1996.
// Concentration is the Herfindahl-Hirschman index: the sum of the squared shares of the gross
// exposure.
//
// For AAA at 60 % with returns .02, -.01, .03, -.04 and BBB at 40 % with 0, .01, -.02, .02,
// monthly, at a risk-free 2.4 %: volatility 0.04472135955, Sharpe -0.2683281573, drawdown 0.016,
// HHI 0.52, score 39.23.
//
// Returns, rates, shares and weights are decimals.
package portfoliorisk

import (
	"math"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/money"
)

// Service is the declaration of portfolio-risk/score.
var Service = policy.Declare(policy.Service{
	Name:       "portfolio-risk/score",
	PriceCents: 15,
	Group:      policy.GroupFinance,
	Title:      "Portfolio risk score",
	Summary: "Scores a portfolio's risk from 0 to 100 from weights and, if given, returns: volatility, Sharpe, Sortino, Omega, information ratio, drawdown, Calmar, value at risk, " +
		"expected shortfall, beta, concentration (HHI), diversification, risk contributions, with sector and position breakdown.",
	Example: `{"positions":[{"symbol":"AAA","weight":0.6,"sector":"tech","returns":[0.02,-0.01,0.03,-0.04]},` +
		`{"symbol":"BBB","weight":0.4,"sector":"health","returns":[0,0.01,-0.02,0.02]}],"periodsPerYear":12,"riskFreeRate":0.024}`,
	Rules:      documented,
	Conditions: Conditions,
	Reasons:    []string{"weights_do_not_sum_to_one", "returns_incomplete", "inconsistent_input", "out_of_range"},
	Charts:     charts,
}, Evaluate)

// Input is a portfolio. It may have returns of each position or of the whole portfolio.
type Input struct {
	policy.Common
	Positions        []Position `json:"positions" jsonschema:"minItems=1,maxItems=500" jsonschema_description:"The holdings."`
	PortfolioReturns []float64  `json:"portfolioReturns,omitempty" jsonschema:"minItems=2,maxItems=5000" jsonschema_description:"Return of the whole portfolio in each period, from -1 to 10, instead of the returns of each position."`
	BenchmarkReturns []float64  `json:"benchmarkReturns,omitempty" jsonschema:"minItems=2,maxItems=5000" jsonschema_description:"Returns of the benchmark in the same periods, each from -1 to 10."`
	RiskFreeRate     *float64   `json:"riskFreeRate,omitempty" jsonschema:"minimum=-0.5,maximum=1,default=0" jsonschema_description:"Annual risk-free rate as a decimal; each period gets an equal part."`
	PeriodsPerYear   *int       `json:"periodsPerYear,omitempty" jsonschema:"minimum=1,maximum=365,default=252" jsonschema_description:"Number of periods of the returns in a year."`
	ConfidenceLevel  *float64   `json:"confidenceLevel,omitempty" jsonschema:"minimum=0.5,maximum=0.999,default=0.95" jsonschema_description:"Confidence level of valueAtRisk and expectedShortfall."`
}

// Position is one holding. All positions have a weight, or all have a market value.
type Position struct {
	Symbol      string    `json:"symbol" jsonschema:"minLength=1,maxLength=32" jsonschema_description:"Name of the position, unique in the portfolio."`
	Weight      *float64  `json:"weight,omitempty" jsonschema:"minimum=-5,maximum=5" jsonschema_description:"Share of the capital, negative for a short position. The sum of all weights is 1."`
	MarketValue *float64  `json:"marketValue,omitempty" jsonschema:"minimum=-1000000000000000,maximum=1000000000000000" jsonschema_description:"Market value in currency, negative for a short position. The sum of all values is above 0."`
	Sector      *string   `json:"sector,omitempty" jsonschema:"minLength=1,maxLength=64,default=unclassified" jsonschema_description:"Sector of the holding."`
	Returns     []float64 `json:"returns,omitempty" jsonschema:"minItems=2,maxItems=5000" jsonschema_description:"Return in each period, from -1 to 10. All positions have the same number of returns, or none."`
}

// Output is the score with its measures. A number that cannot be computed is null.
type Output struct {
	RiskScore            float64          `json:"riskScore" jsonschema_description:"Risk from 0 to 100; a higher value is riskier."`
	RiskLevel            string           `json:"riskLevel" jsonschema:"enum=low,enum=medium,enum=high,enum=critical" jsonschema_description:"low below 25, medium below 50, high below 75, else critical."`
	Volatility           *float64         `json:"volatility" jsonschema:"nullable" jsonschema_description:"Annual volatility as a decimal."`
	Sharpe               *float64         `json:"sharpe" jsonschema:"nullable" jsonschema_description:"Annual Sharpe ratio."`
	Sortino              *float64         `json:"sortino" jsonschema:"nullable" jsonschema_description:"Annual Sortino ratio."`
	Omega                *float64         `json:"omegaRatio" jsonschema:"nullable" jsonschema_description:"Sum of the excesses of returns above the risk-free rate of a period, divided by the sum of the shortfalls below it; null without a shortfall."`
	InformationRatio     *float64         `json:"informationRatio" jsonschema:"nullable" jsonschema_description:"Annual information ratio: the mean return above benchmarkReturns, divided by its standard deviation."`
	TrackingError        *float64         `json:"trackingError" jsonschema:"nullable" jsonschema_description:"Annual standard deviation of the return above benchmarkReturns, as a decimal."`
	MaxDrawdown          *float64         `json:"maxDrawdown" jsonschema:"nullable" jsonschema_description:"Largest loss from a peak, from 0 to 1."`
	Calmar               *float64         `json:"calmar" jsonschema:"nullable" jsonschema_description:"annualizedReturn divided by maxDrawdown."`
	AnnualizedReturn     *float64         `json:"annualizedReturn" jsonschema:"nullable" jsonschema_description:"Compound annual return."`
	ValueAtRisk          *float64         `json:"valueAtRisk" jsonschema:"nullable" jsonschema_description:"Loss of a period that is not exceeded at confidenceLevel; a positive number is a loss."`
	ExpectedShortfall    *float64         `json:"expectedShortfall" jsonschema:"nullable" jsonschema_description:"Mean loss of the periods with a loss of at least valueAtRisk."`
	Beta                 *float64         `json:"beta" jsonschema:"nullable" jsonschema_description:"Beta of the portfolio against benchmarkReturns."`
	ConcentrationHHI     float64          `json:"concentrationHHI" jsonschema_description:"Sum of the squared shares of the gross exposure, from 0 to 1."`
	Diversification      float64          `json:"diversification" jsonschema_description:"1 less concentrationHHI."`
	EffectiveHoldings    float64          `json:"effectiveHoldings" jsonschema_description:"1 divided by concentrationHHI."`
	DiversificationRatio *float64         `json:"diversificationRatio" jsonschema:"nullable" jsonschema_description:"Weighted volatility of the positions divided by the volatility of the portfolio."`
	GrossExposure        float64          `json:"grossExposure" jsonschema_description:"Sum of the absolute weights."`
	Observations         int              `json:"observations" jsonschema_description:"Number of periods; 0 without returns."`
	Sectors              []Sector         `json:"sectors" jsonschema_description:"Sectors by weight, the largest first."`
	SectorHHI            float64          `json:"sectorHHI" jsonschema_description:"Concentration of the absolute sector weights, from 0 to 1."`
	Positions            []Holding        `json:"positions" jsonschema_description:"The positions, in the order of the request."`
	Findings             []policy.Finding `json:"findings" jsonschema_description:"Findings, the most severe first; may be empty."`
}

// Sector contains the sums over the positions of one sector.
type Sector struct {
	Sector   string  `json:"sector" jsonschema_description:"Name of the sector."`
	Weight   float64 `json:"weight" jsonschema_description:"Net share of the capital."`
	Holdings int     `json:"holdings" jsonschema_description:"Number of positions."`
}

// Holding is one position with its contribution to the risk.
type Holding struct {
	Symbol               string   `json:"symbol" jsonschema_description:"The symbol as sent."`
	Sector               string   `json:"sector" jsonschema_description:"The sector as sent, or unclassified."`
	Weight               float64  `json:"weight" jsonschema_description:"Share of the capital."`
	RiskContribution     *float64 `json:"riskContribution" jsonschema:"nullable" jsonschema_description:"Share of the portfolio's variance. The sum of all shares is 1."`
	StandaloneVolatility *float64 `json:"standaloneVolatility" jsonschema:"nullable" jsonschema_description:"Annual volatility of the position alone."`
}

// Evaluate scores a portfolio. The codes of its errors are missing_field, out_of_range, too_long,
// too_many_items, mutually_exclusive, inconsistent_input, weights_do_not_sum_to_one and
// returns_incomplete.
func Evaluate(in Input) (Output, error) {
	p, err := read(in)
	if err != nil {
		return Output{}, err
	}
	out := Output{Observations: len(p.returns), Findings: []policy.Finding{}}
	hhi := p.concentration(&out)
	p.sectors(&out)
	var s scores
	s.add(hhi/fullHHI, concentrationPart)
	p.holdings(&out)
	if len(p.returns) > 0 {
		m := p.measure()
		p.report(&out, m)
		s.add(m.volatility/fullVolatility, volatilityPart)
		s.add(m.drawdown/fullDrawdown, drawdownPart)
		if !math.IsNaN(m.sharpe) {
			s.add((1-m.sharpe)/2, sharpePart)
		}
	}
	out.RiskScore = s.score()
	out.RiskLevel = level(out.RiskScore)
	out.Findings = policy.SortFindings(p.findings(&out))
	return out, nil
}

// scores computes a weighted mean of parts from 0 to 1.
type scores struct{ sum, weight float64 }

func (s *scores) add(part, weight float64) {
	s.sum += float64(math.Min(math.Max(part, 0), 1) * weight)
	s.weight += weight
}

// score returns the mean as a number from 0 to 100 with two decimals, rounded half away from zero.
// It first rounds to 12 digits, so that the last bits of a double do not decide how a half is
// rounded.
func (s *scores) score() float64 {
	return math.Round(policy.Sig12(100*s.sum/s.weight)*100) / 100
}

// level returns the risk level of a score.
func level(score float64) string {
	switch {
	case score < 25:
		return "low"
	case score < 50:
		return "medium"
	case score < 75:
		return "high"
	}
	return "critical"
}

// portfolio is an input that was read and checked.
type portfolio struct {
	symbols, names []string // names contains the sectors
	weights        []float64
	gross          float64     // sum of the absolute weights
	assets         [][]float64 // returns of each position; nil if there are none
	returns        []float64   // returns of the portfolio; nil if there are none
	benchmark      []float64
	riskFree       float64 // per period
	perYear        float64
	confidence     float64
}

// concentration sets the results that depend only on the weights, and returns the
// Herfindahl-Hirschman index.
func (p *portfolio) concentration(out *Output) float64 {
	var squares money.Compensated
	for _, w := range p.weights {
		a := math.Abs(w) / p.gross
		squares.Add(float64(a * a))
	}
	hhi := squares.Float()
	out.ConcentrationHHI = policy.Sig12(hhi)
	out.EffectiveHoldings = policy.Sig12(1 / hhi)
	out.Diversification = policy.Sig12(1 - hhi)
	out.GrossExposure = policy.Sig12(p.gross)
	return hhi
}

// holdings adds the positions with their contributions to the risk.
func (p *portfolio) holdings(out *Output) {
	out.Positions = make([]Holding, len(p.symbols))
	variance := 0.0
	if p.assets != nil {
		variance = covariance(p.returns, p.returns)
	}
	var weighted money.Compensated
	for i := range p.symbols {
		h := Holding{Symbol: p.symbols[i], Sector: p.names[i], Weight: policy.Sig12(p.weights[i])}
		if p.assets != nil {
			own := math.Sqrt(covariance(p.assets[i], p.assets[i]))
			weighted.Add(math.Abs(p.weights[i]) * own)
			h.StandaloneVolatility = money.Number(own * math.Sqrt(p.perYear))
			if math.Sqrt(variance) >= noDeviation {
				h.RiskContribution = money.Number(p.weights[i] * covariance(p.assets[i], p.returns) / variance)
			}
		}
		out.Positions[i] = h
	}
	if p.assets != nil && math.Sqrt(variance) >= noDeviation {
		out.DiversificationRatio = money.Number(weighted.Float() / math.Sqrt(variance))
	}
}

// report sets the results that depend on the returns.
func (p *portfolio) report(out *Output, m measures) {
	number := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return money.Number(x)
	}
	out.Volatility, out.Sharpe, out.Sortino = number(m.volatility), number(m.sharpe), number(m.sortino)
	out.MaxDrawdown, out.Calmar, out.AnnualizedReturn = number(m.drawdown), number(m.calmar), number(m.annualized)
	out.ValueAtRisk, out.ExpectedShortfall, out.Beta = number(m.valueAtRisk), number(m.shortfall), number(m.beta)
	out.Omega, out.InformationRatio, out.TrackingError = number(m.omega), number(m.information), number(m.tracking)
}
