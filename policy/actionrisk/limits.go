package actionrisk

// Limits of one assessment. Each bounds work, never what was found before it.
const (
	// maxSteps is the work of one assessment, some 0.1 microseconds a step; honest
	// commands of 2,000 characters take a third of it. It takes the place of a
	// time-out, and keeps any text below two milliseconds.
	maxSteps = 12_000
	// maxNesting is how many openers may stand open before a parser sees the
	// text: 1,000 nested "((" cost the shell parser over a millisecond.
	maxNesting = 64
	// maxDepth is how often one text may be found inside another.
	maxDepth = 16
	// maxInvocations bounds loops within loops.
	maxInvocations = 512
	// maxWords is what brace expansion may make of one word.
	maxWords = 256
	// maxBraced is how many words braces may make in all; beyond it only the first
	// alternative of each is looked at.
	maxBraced = 512
	// maxLayers is how many encodings are peeled off one text, maxDecoded how
	// long a decoded text may be, maxDecodedTotal all of them together.
	maxLayers       = 4
	maxDecoded      = 8 << 10
	maxDecodedTotal = 32 << 10
	// maxValue is the longest literal kept in a variable.
	maxValue = 4 << 10
	// maxLoop is how many values of a loop are run through.
	maxLoop = 64
	// maxRounds is how many values all loops together are run through; beyond it
	// each loop runs once, so that loops within loops do not multiply.
	maxRounds = 128
	// maxFiles is how many files written by the command itself are remembered.
	maxFiles = 8
	// maxSuspects is how many programs that no table knows may stand one inside the
	// other; wrappers that are known count as depth alone.
	maxSuspects = 3
	// maxPasswordWords is how many words of a command are looked through for passwords
	// before it is shown.
	maxPasswordWords = 64
	// maxLooks is at how many words with look-alike letters in prose is looked.
	maxLooks = 16
	// maxTexts is how many parsed texts are kept.
	maxTexts = 16
	// maxClasses is for how many paths what they are is kept.
	maxClasses = 256
	// maxRange is the longest a..b of PowerShell that is written out: a text has fewer
	// characters.
	maxRange = 2048
	// maxFindings is how many findings are reported, the highest first.
	maxFindings = 64
	// maxNumber is the longest text that is read as a number: 256 bits in decimal,
	// with separators and a factor.
	maxNumber = 160
	// maxLaterSQL is how many statements behind a doubtful first one are looked at to
	// tell whether a text is SQL; scripts set two or three settings first.
	maxLaterSQL = 8
	// maxJSONDepth is the depth to which JSON is looked into.
	maxJSONDepth = 64
	// maxText is the longest text that is looked at at all; the contract has
	// 2,000 code points, decoded texts may be longer.
	maxText = 32 << 10
)

// budget counts steps down. Once spent, everything that asks gets no.
type budget struct {
	left  int
	spent bool // somebody asked for more than there was
}

// spend takes n steps and tells whether they were there.
func (b *budget) spend(n int) bool {
	if b.left < n {
		b.left, b.spent = 0, true
		return false
	}
	b.left -= n
	return true
}

// nesting is the largest number of brackets and backticks open at once; quotes
// are ignored, so it errs on the high side.
func nesting(text string) int {
	depth, deepest, ticks := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '`':
			ticks++
		case '\\':
			i++
		case 'i', 'c', 'w', 'f', 'u', 's':
			if i == 0 || !isNameByte(text[i-1]) {
				for _, k := range [...]string{"if ", "case ", "while ", "for ", "until ", "select "} {
					if len(text)-i >= len(k) && text[i:i+len(k)] == k {
						depth++
						deepest = max(deepest, depth)
					}
				}
				for _, k := range [...]string{"fi", "done", "esac"} {
					if len(text)-i >= len(k) && text[i:i+len(k)] == k && (i+len(k) == len(text) || !isNameByte(text[i+len(k)])) {
						depth = max(depth-1, 0)
					}
				}
			}
		}
	}
	return max(deepest, ticks/8)
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
