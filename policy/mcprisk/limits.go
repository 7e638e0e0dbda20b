package mcprisk

// Limits and thresholds that no struct tag states.
const (
	maxTools       = 500     // tools in one manifest; the largest public servers have fewer than 200
	maxServers     = 200     // servers in one client configuration
	maxFindings    = 500     // findings in one answer; the most severe are kept
	maxEvidence    = 120     // code points of evidence in a finding
	maxDescription = 4096    // code points; people do not read longer descriptions
	manyTools      = 40      // a manifest with more tools gets a finding, because models then choose noticeably worse
	minBase64      = 120     // smallest number of base64 characters that counts as a payload, not as an identifier
	minHex         = 160     // smallest number of hexadecimal digits that counts as a payload; two SHA-256 have 128
	minLine        = 60      // smallest length of a line in a wrapped payload; e-mail wraps at 76, PEM at 64
	maxScan        = 1 << 20 // bytes of one text that the rules read; request bodies are smaller
	maxVariation   = 3       // largest number of consecutive variation selectors; more can encode hidden bytes
)

// points contains the points of a severity in the risk score. They count once per rule and tool.
var points = map[string]float64{"critical": 40, "high": 20, "medium": 8, "low": 3, "info": 0}
