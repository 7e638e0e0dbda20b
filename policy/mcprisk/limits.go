package mcprisk

// Bounds that no single field's tag says.
const (
	maxTools       = 500     // tools of one manifest; the largest public servers have below 200
	maxServers     = 200     // entries of one client configuration
	maxFindings    = 500     // of one answer, the most severe first
	maxEvidence    = 120     // code points of a finding's evidence
	maxDescription = 4096    // code points of a description a person still reads
	manyTools      = 40      // above it, models choose tools visibly worse
	minBase64      = 120     // characters that are a payload and not an identifier
	minHex         = 160     // digits: twice a SHA-256 is still shorter
	minLine        = 60      // characters of a line of a wrapped payload: mail wraps at 76, PEM at 64
	maxScan        = 1 << 20 // bytes of one text that rules look at; bodies are below it
	maxVariation   = 3       // variation selectors in a row; more carry hidden bytes
)

// Points of a finding in the risk score, counted once per rule and tool.
var points = map[string]float64{"critical": 40, "high": 20, "medium": 8, "low": 3, "info": 0}
