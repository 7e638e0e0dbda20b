package mcprisk

import (
	"maps"
	"slices"
)

// rule is one entry of the catalogue: the severity and the texts of its findings.
type rule struct{ severity, reason, fix string }

// rules contains every rule of the contract by its id. Some rules have more than one severity:
// invisible_unicode, sensitive_file_access and suspicious_parameter.
var rules = map[string]rule{
	"hidden_instruction_block": {"critical", "the text holds a block that models read as instructions", "remove the block; a description says what a tool does"},
	"instruction_override":     {"critical", "the text tells the model to drop its instructions", "remove the sentence and do not install until its origin is clear"},
	"concealment":              {"critical", "the text tells the model to keep something from the user", "remove the sentence; nothing a tool does may be hidden from the user"},
	"sensitive_file_access":    {"critical", "the text names a file that holds secrets", "remove the reference, or give the tool its own credentials"},
	"data_exfiltration":        {"critical", "the text tells the model to send private data to an address", "remove the instruction and the address"},
	"malicious_capability":     {"critical", "the text says that the tool attacks: it takes secrets, installs malware or turns off protection", "do not install the server"},
	"private_data_request":     {"high", "the text asks the model for credentials, the conversation or its instructions", "remove the request; a tool gets only what its task needs"},
	"invisible_unicode":        {"critical", "the text holds characters that do not show", "remove the characters and compare what is left with what the publisher shows"},
	"terminal_escape":          {"high", "the text holds control characters that change what a terminal shows", "remove the control characters"},
	"homoglyph_name":           {"high", "the tool's name uses letters that look like others", "use ASCII letters in tool names"},
	"tool_shadowing":           {"high", "the text steers how other tools are used", "describe this tool only"},
	"tool_name_collision":      {"high", "another tool has the same or nearly the same name", "give the tool a name of its own"},
	"coercive_priority":        {"medium", "the text claims priority over the model's own choice", "remove the claim; let the model choose"},
	"encoded_payload":          {"high", "the text holds a long encoded value that a reader cannot check", "remove the value, or give it as a readable resource"},
	"command_execution":        {"high", "the tool runs commands or code", "restrict it to named commands, or run it in a sandbox with approval"},
	"destructive_capability":   {"medium", "the tool destroys data and does not say so", "set annotations.destructiveHint to true and ask before each call"},
	"annotation_mismatch":      {"high", "the tool claims to be read-only and is not", "set annotations.readOnlyHint to false"},
	"payment_capability":       {"high", "the tool moves money or signs with a key", "require approval and a spending limit for each call"},
	"arbitrary_network_egress": {"medium", "the tool sends requests to any address", "restrict the hosts it may reach"},
	"filesystem_write":         {"medium", "the tool writes files", "restrict it to one folder"},
	"missing_input_schema":     {"medium", "the tool has no input schema", "declare an input schema"},
	"open_schema":              {"low", "the input schema accepts anything", "list the properties and set additionalProperties to false"},
	"suspicious_parameter":     {"high", "a parameter asks for private context or credentials", "remove the parameter; credentials belong in the server's configuration"},
	"broad_scope":              {"high", "the server asks for more rights than a tool needs", "ask for the narrowest scope that works"},
	"unpinned_package":         {"medium", "the package can change without notice", "pin an exact version or a digest"},
	"pipe_to_shell":            {"critical", "a download is run without being looked at", "install from a pinned package"},
	"plaintext_transport":      {"high", "the server is reached without encryption", "use https"},
	"hardcoded_secret":         {"high", "the configuration holds a secret", "refer to a variable of the environment, and revoke the secret"},
	"privileged_runtime":       {"high", "the server runs with the rights of the whole machine", "remove the privilege, the mount or the host network"},
	"unsafe_environment":       {"high", "a variable loads foreign code into the server or turns off a check", "remove the variable"},
	"no_authentication":        {"medium", "a remote server is used without authentication", "use OAuth or a token"},
	"metadata_endpoint":        {"critical", "the text names an address that hands out credentials or local files", "remove the address"},
	"oversized_description":    {"low", "the description is longer than anybody reads", "shorten it"},
	"analysis_limit":           {"high", "the manifest takes more looking at than one manifest may, so not all of it was looked at", "shorten the texts, or split the server"},
	"rug_pull":                 {"critical", "the manifest is not the one that was approved", "compare both versions before using the server again"},
	"many_tools":               {"info", "the server brings very many tools", "enable only the tools that are needed"},
}

// RuleIDs returns the ids of all rules in alphabetical order.
func RuleIDs() []string { return slices.Sorted(maps.Keys(rules)) }
