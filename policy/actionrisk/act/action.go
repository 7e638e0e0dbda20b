// Package act defines the types that all parts of the engine share: the action to judge, and the
// words, texts and calls found in it with their ranges in the command. Nothing in it depends on a
// language or a rule.
package act

// Action is one proposed action with the caller's statements about it: the twelve members of a
// quick gate request. Only Command is required. Lengths are in code points.
type Action struct {
	Command               string `json:"command" jsonschema:"minLength=1,maxLength=2000,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"The shell, SQL, Git, deployment, cloud, MCP, wallet or x402 action, exactly as it would run."`
	Repo                  string `json:"repo,omitempty" jsonschema:"minLength=1,maxLength=500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Repository in which the action runs."`
	Cwd                   string `json:"cwd,omitempty" jsonschema:"minLength=1,maxLength=500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Working directory. Relative paths in the command start there."`
	Branch                string `json:"branch,omitempty" jsonschema:"minLength=1,maxLength=500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Checked-out branch. Git rules use it if the command names no refspec."`
	Actor                 string `json:"actor,omitempty" jsonschema:"minLength=1,maxLength=500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Who proposes the action. It never changes the risk."`
	Intent                string `json:"intent,omitempty" jsonschema:"minLength=1,maxLength=1000,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Stated purpose. It never changes the risk."`
	DiffStat              string `json:"diffStat,omitempty" jsonschema:"minLength=1,maxLength=1500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Size of the change. It never changes the risk."`
	Environment           string `json:"environment,omitempty" jsonschema:"minLength=1,maxLength=500,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Environment that the action affects, such as production, staging or development."`
	Target                string `json:"target,omitempty" jsonschema:"minLength=1,maxLength=1000,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Resource that the action affects. The name of an environment in it can change the risk."`
	Commit                string `json:"commit,omitempty" jsonschema:"minLength=1,maxLength=200,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Commit that the action belongs to. It never changes the risk."`
	DiffHash              string `json:"diffHash,omitempty" jsonschema:"minLength=1,maxLength=200,pattern=^(?:\\S|\\S[\\s\\S]*\\S)$" jsonschema_description:"Hash of the change. It never changes the risk."`
	FailClosedOnUnmatched bool   `json:"failClosedOnUnmatched,omitempty,omitzero" jsonschema_description:"If true, an action that matches no rule and is not proven read-only needs review. If false, its risk is low."`
}

// Level is a level of risk: low, medium, high or critical.
type Level int

// The levels of risk, in ascending order.
const (
	Low Level = iota
	Medium
	High
	Critical
)

// String returns the level's name, as the API and the records write it.
func (l Level) String() string { return [...]string{"low", "medium", "high", "critical"}[Clamp(l)] }

// Clamp limits a level to the range from Low to Critical.
func Clamp(l Level) Level { return min(max(l, Low), Critical) }
