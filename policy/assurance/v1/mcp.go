package v1

import "slices"

func (e *evaluator) mcp(r Rules, in Intent) {
	tool := in.ServerID + "/" + in.ToolName
	if r.AllowedMCPServers != nil && !slices.Contains(r.AllowedMCPServers, in.ServerID) {
		e.say(Deny, "mcp.server.not_allowed", "serverId", "the server is not allowed", "one of allowedMcpServers", in.ServerID)
	}
	if r.blocksTool(in.ServerID, in.ToolName) {
		e.say(Deny, "mcp.tool.blocked", "toolName", "the tool is blocked", "not in blockedMcpTools", tool)
	}
	if r.AllowedMCPTools != nil && !r.allowsTool(in.ServerID, in.ToolName) {
		e.say(Deny, "mcp.tool.not_allowed", "toolName", "the tool is not allowed", "one of allowedMcpTools", tool)
	}
	if in.ServerURL != "" {
		e.other(r, "mcp.url.not_allowed", "serverUrl", in.ServerURL, in.ServerHasUserinfo)
	}
	if in.ServerHasFragment {
		e.always(Info, "mcp.url.fragment", "serverUrl", "the fragment was dropped", "no fragment", "fragment")
	}
	e.arguments(r, in)
	e.risk(r, in)
}

func (e *evaluator) arguments(r Rules, in Intent) {
	const field = "toolArgumentsHash"
	switch {
	case in.ToolArgumentsHashBroken:
		e.always(Deny, "mcp.arguments.hash_invalid", field, "the hash is not 64 lower-case hex digits", "64 lower-case hex digits", in.ToolArgumentsGivenHash)
	case in.ToolArgumentsGiven && in.ToolArgumentsGivenHash != "" && in.ToolArgumentsGivenHash != in.ToolArgumentsHash:
		e.always(Deny, "mcp.arguments.hash_mismatch", field, "the hash is not that of the arguments", in.ToolArgumentsHash, in.ToolArgumentsGivenHash)
	}
	if r.RequireMCPArgumentBinding && !in.ToolArgumentsGiven && in.ToolArgumentsGivenHash == "" {
		e.say(Deny, "mcp.arguments.unbound", field, "the policy requires the arguments or their hash", "toolArguments or toolArgumentsHash", "absent")
	}
}

func (e *evaluator) risk(r Rules, in Intent) {
	switch {
	case r.ReviewMCPRiskAtOrAbove == "":
	case in.DeclaredRisk == "":
		e.say(NeedsReview, "mcp.risk.missing", "declaredRisk", "the risk is not declared", "below "+r.ReviewMCPRiskAtOrAbove, "absent")
	case atOrAbove(in.DeclaredRisk, r.ReviewMCPRiskAtOrAbove):
		e.say(NeedsReview, "mcp.risk.threshold", "declaredRisk", "the declared risk needs a review", "below "+r.ReviewMCPRiskAtOrAbove, in.DeclaredRisk)
	}
}
