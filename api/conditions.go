package api

import (
	"sync"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/dealanalyzer"
	"github.com/countersign/countersign/policy/emailcheck"
	"github.com/countersign/countersign/policy/investmentevidence"
	"github.com/countersign/countersign/policy/mcprisk"
	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/paymentpolicy"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/spendassurance"
	"github.com/countersign/countersign/policy/waterfall"
)

// What struct tags cannot say: which members need or exclude each other. Published
// in the schema of a request, beside what the tags make; the service itself refuses
// such a body with the code and the place of the member, which a schema could not.
// TestConditionsAreThoseOfTheService holds both to the same verdict.

// conditions are those of requests, by operation. They are made once and shared:
// nobody changes them.
var conditions = sync.OnceValue(func() map[string][]any {
	return map[string][]any{
		bond.Service.Operation:               bondConditions(),
		options.Service.Operation:            optionConditions(),
		waterfall.Service.Operation:          waterfallConditions(),
		cashflow.Service.Operation:           cashflowConditions(),
		portfoliorisk.Service.Operation:      portfolioConditions(),
		dealanalyzer.Service.Operation:       {within("terminal", terminalConditions("method", "growthRate", "exitMultiple", "metric")...)},
		investmentevidence.Service.Operation: {anyGiven("cashFlow", "portfolio"), within("cashFlow", cashflowConditions()...), within("portfolio", portfolioConditions()...)},
		attest.Service.Operation:             intentConditions(),
		decide.ID:                            intentConditions(),
		registerAgent.ID:                     {when(given("email"), is("identity_type", "verified_email"))},
	}
})

// given is a schema of objects that have a member; null is as good as absent.
func given(name string) op.Object {
	return op.Object{"required": []any{name}, "properties": op.Object{name: op.Object{"not": op.Object{"type": "null"}}}}
}

// filled is a schema of objects that have a list with something in it.
func filled(name string) op.Object {
	return op.Object{"required": []any{name}, "properties": op.Object{name: op.Object{"type": "array", "minItems": 1, "items": op.Object{}}}}
}

// is is a schema of objects whose member has a value.
func is(name string, value any) op.Object {
	return op.Object{"required": []any{name}, "properties": op.Object{name: op.Object{"const": value}}}
}

func allOf(schemas ...any) op.Object      { return together("allOf", schemas) }
func anyOfThese(schemas ...any) op.Object { return together("anyOf", schemas) }
func not(schema op.Object) op.Object      { return op.Object{"not": schema} }
func when(this, then op.Object) op.Object { return op.Object{"if": this, "then": then} }

// together joins schemas by a keyword, which linters take amiss around one alone.
func together(keyword string, schemas []any) op.Object {
	if len(schemas) == 1 {
		return schemas[0].(op.Object)
	}
	return op.Object{keyword: schemas}
}

func eachGiven(names ...string) (list []any) {
	for _, name := range names {
		list = append(list, given(name))
	}
	return list
}

func allGiven(names ...string) op.Object { return allOf(eachGiven(names...)...) }
func anyGiven(names ...string) op.Object { return anyOfThese(eachGiven(names...)...) }
func noneGiven(names ...string) op.Object {
	return not(anyGiven(names...))
}

// within says conditions of a member that is an object.
func within(name string, rules ...any) op.Object {
	return op.Object{"properties": op.Object{name: when(op.Object{"type": "object"}, allOf(rules...))}}
}

func bondConditions() []any {
	lists := []any{filled("couponSteps"), filled("amortization"), filled("callSchedule"), filled("putSchedule")}
	loan := allOf(allGiven("annualRate", "termMonths"), not(is("mode", "bond")), not(anyOfThese(lists...)),
		noneGiven("faceValue", "couponRate", "frequency", "settlementDate", "maturityDate", "yearsToMaturity", "dayCount", "basis",
			"issueDate", "firstCouponDate", "lastCouponDate", "lastPeriod", "redemption", "yieldToMaturity", "cleanPrice", "dirtyPrice"))
	dated := allOf(allGiven("settlementDate", "maturityDate"), when(given("firstCouponDate"), given("issueDate")), not(allGiven("dayCount", "basis")))
	undated := allOf(noneGiven("settlementDate", "maturityDate", "dayCount", "basis", "issueDate", "firstCouponDate", "lastCouponDate"), not(anyOfThese(lists...)))
	bond := allOf(given("couponRate"), not(is("mode", "loan")),
		op.Object{"oneOf": eachGiven("yieldToMaturity", "cleanPrice", "dirtyPrice")},
		noneGiven("annualRate", "termMonths", "startDate", "balloonAmount", "interestOnlyMonths", "extraMonthlyPayment", "upfrontFees", "includeSchedule"),
		not(allOf(given("redemption"), filled("amortization"))),
		op.Object{"if": given("yearsToMaturity"), "then": undated, "else": dated})
	return []any{op.Object{"if": given("principal"), "then": loan, "else": bond}}
}

func optionConditions() []any {
	dividends := func(schema op.Object) op.Object {
		return op.Object{"properties": op.Object{"dividends": op.Object{"items": schema}}}
	}
	return []any{
		anyGiven("marketPrice", "volatility"),
		when(filled("dividends"), noneGiven("dividendYield")),
		op.Object{"if": given("valuationDate"), "then": dividends(allOf(given("date"), noneGiven("timeYears"))), "else": dividends(allOf(given("timeYears"), noneGiven("date")))},
		op.Object{"if": given("timeToExpiryYears"), "then": noneGiven("valuationDate", "expiryDate"), "else": allGiven("valuationDate", "expiryDate")},
	}
}

func waterfallConditions() []any {
	simple := []string{"contributedCapital", "distributableAmount", "holdingPeriodYears"}
	return []any{
		op.Object{"if": given("events"),
			"then": allOf(noneGiven(simple...), not(anyOfThese(is("compounding", "quarterly"), is("compounding", "monthly")))),
			"else": allOf(allGiven(simple...), not(is("style", "american")))},
		op.Object{"if": given("hurdles"), "then": noneGiven("preferredReturnRate", "carryRate", "catchUpRate"), "else": given("preferredReturnRate")},
		when(is("style", "american"), op.Object{"properties": op.Object{"events": op.Object{"items": given("dealId")}}}),
	}
}

func cashflowConditions() []any {
	dated := op.Object{"required": []any{"cashFlows"}, "properties": op.Object{"cashFlows": op.Object{"type": "array", "minItems": 1, "items": op.Object{"type": "object"}}}}
	flow := op.Object{"type": "object", "properties": op.Object{
		"date":   op.Object{"type": "string", "format": "date"},
		"amount": op.Object{"type": "number"},
	}, "required": []any{"date", "amount"}, "additionalProperties": false}
	return []any{
		anyGiven("cashFlows", "dcf"),
		op.Object{"properties": op.Object{"cashFlows": anyOfThese(op.Object{"type": "null"},
			op.Object{"type": "array", "items": op.Object{"type": "number"}}, op.Object{"type": "array", "items": flow})}},
		when(given("financeRate"), given("reinvestRate")), when(given("reinvestRate"), given("financeRate")),
		when(dated, noneGiven("periodsPerYear", "financeRate")),
		within("dcf", terminalConditions("terminalMethod", "terminalGrowthRate", "exitMultiple", "terminalMetric")...),
	}
}

// terminalConditions are what a terminal value needs, by its method.
func terminalConditions(method, growth, multiple, metric string) []any {
	return []any{when(is(method, "gordon"), given(growth)), when(is(method, "exitMultiple"), allGiven(multiple, metric))}
}

func portfolioConditions() []any {
	items := func(schema op.Object) op.Object {
		return op.Object{"properties": op.Object{"positions": op.Object{"items": schema}}}
	}
	return []any{
		anyOfThese(items(allOf(given("weight"), noneGiven("marketValue"))), items(allOf(given("marketValue"), noneGiven("weight")))),
		anyOfThese(items(given("returns")), items(noneGiven("returns"))),
		when(given("portfolioReturns"), items(noneGiven("returns"))),
	}
}

func intentConditions() []any {
	payment := []string{"resourceUrl", "method", "scheme", "network", "asset", "payTo", "amountUnits", "amountUsd", "facilitatorUrl",
		"paymentIdentifier", "paymentPayloadResource", "paymentPayloadMethod"}
	tool := []string{"serverId", "serverUrl", "toolName", "toolArguments", "toolArgumentsHash", "declaredRisk"}
	intent := func(required, foreign []string) op.Object {
		return within("intent", allGiven(required...), noneGiven(foreign...))
	}
	return []any{
		when(is("protocol", "x402"), intent(payment[:2], tool)),
		when(is("protocol", "mcp"), intent([]string{"serverId", "toolName"}, payment)),
	}
}

// reasonsOf are the codes with which an operation refuses a body that has the
// published shape: what JSON Schema cannot say. The description of the operation
// names them.
func reasonsOf(o *op.Operation) []string { return refusals()[o.ID] }

// refusals are those codes, by operation, made once and shared.
var refusals = sync.OnceValue(func() map[string][]string {
	const dates, sums = "inconsistent_input", "out_of_range"
	deal := []string{"growth_not_below_discount_rate", "catch_up_not_above_carry", dates, sums, "no_cash_flows"}
	flows := []string{"no_cash_flows", "growth_not_below_discount_rate", dates, sums}
	positions := []string{"weights_do_not_sum_to_one", "returns_incomplete", dates, sums}
	return map[string][]string{
		bond.Service.Operation:               {"yield_not_found", "invalid_date", dates, sums},
		options.Service.Operation:            {"price_outside_no_arbitrage_bounds", dates, sums},
		waterfall.Service.Operation:          {"catch_up_not_above_carry", "too_many_items", dates, sums},
		cashflow.Service.Operation:           flows,
		portfoliorisk.Service.Operation:      positions,
		dealanalyzer.Service.Operation:       deal,
		investmentevidence.Service.Operation: append(append([]string{}, flows...), positions...),
		attest.Service.Operation:             {"arguments_hash_mismatch", sums},
		paymentpolicy.Service.Operation:      {sums},
		spendassurance.Service.Operation:     {dates, sums},
		mcprisk.Service.Operation:            {"empty_manifest", "missing_field", "wrong_type", "too_many_items", sums},
		emailcheck.Service.Operation:         {sums},
		issueFreeKey.ID:                      {"invalid_email"},
		requestSignIn.ID:                     {"invalid_email"},
		registerAgent.ID:                     {codeInvalidMetadata},
		requestAccessToken.ID:                {codeInvalidRequest, codeGrantType, accounts.CodeInvalidScope, codeInvalidTarget},
		revokeAccessToken.ID:                 {codeInvalidRequest},
		introspectAccessToken.ID:             {codeInvalidRequest},
		requestRefund.ID:                     {"unknown_operation"},
		verifyRecord.ID:                      {"missing_field", "wrong_type", "too_many_items", sums},
		addMember.ID:                         {"invalid_email"},
		decide.ID:                            {sums}, // text that does not show
		bindReceipt.ID:                       {sums},
		approve.ID:                           {sums},
		renameOrganization.ID:                {sums},
		issueToken.ID:                        {sums},
		activatePolicy.ID:                    {sums},
		freezePolicy.ID:                      {sums},
		draftPolicy.ID:                       {"missing_field", "wrong_type", "unknown_field", "invalid_enum", "invalid_format", "too_many_items", sums},
		createWebhook.ID:                     {sums},
	}
})
