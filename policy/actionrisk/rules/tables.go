package rules

import _ "embed" // for the go:embed directives below

// The tables, each embedded as a string: reading it copies nothing, while reading a file of an
// embedded folder would copy the file.
var (
	//go:embed amounts.json
	amountsTable string
	//go:embed calls.json
	callsTable string
	//go:embed clients.json
	clientsTable string
	//go:embed cloud.json
	cloudTable string
	//go:embed code.json
	codeTable string
	//go:embed deploy.json
	deployTable string
	//go:embed env.json
	envTable string
	//go:embed functions.json
	functionsTable string
	//go:embed git.json
	gitTable string
	//go:embed groups.json
	groupsTable string
	//go:embed http.json
	httpTable string
	//go:embed infra.json
	infraTable string
	//go:embed k8s.json
	k8sTable string
	//go:embed mcp.json
	mcpTable string
	//go:embed names.json
	namesTable string
	//go:embed nosql.json
	nosqlTable string
	//go:embed orm.json
	ormTable string
	//go:embed priv.json
	privTable string
	//go:embed programs.json
	programsTable string
	//go:embed rce.json
	rceTable string
	//go:embed reads.json
	readsTable string
	//go:embed resources.json
	resourcesTable string
	//go:embed safer.json
	saferTable string
	//go:embed secret.json
	secretTable string
	//go:embed seen.json
	seenTable string
	//go:embed shell.json
	shellTable string
	//go:embed sql.json
	sqlTable string
	//go:embed text.json
	textTable string
	//go:embed verbs.json
	verbsTable string
	//go:embed wallet.json
	walletTable string
	//go:embed win.json
	winTable string
	//go:embed windows.json
	windowsTable string
	//go:embed x402.json
	x402Table string
)

// Tables returns the tables of this release as JSON, by name.
func Tables() map[string]string {
	return map[string]string{
		"amounts": amountsTable, "calls": callsTable, "clients": clientsTable, "cloud": cloudTable, "code": codeTable,
		"deploy": deployTable, "env": envTable, "functions": functionsTable, "git": gitTable, "groups": groupsTable, "http": httpTable,
		"infra": infraTable, "k8s": k8sTable, "mcp": mcpTable, "names": namesTable, "nosql": nosqlTable, "orm": ormTable,
		"priv": privTable, "programs": programsTable, "rce": rceTable, "reads": readsTable,
		"resources": resourcesTable, "safer": saferTable, "secret": secretTable,
		"seen": seenTable, "shell": shellTable, "sql": sqlTable, "text": textTable, "verbs": verbsTable, "wallet": walletTable,
		"win": winTable, "windows": windowsTable, "x402": x402Table,
	}
}
