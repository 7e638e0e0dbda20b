package words

import "strings"

// DiffLine is a line of a comparison: in both texts, only in the first, or only in the second.
type DiffLine struct {
	Kind string // "" for both, "del" for the first, "ins" for the second
	Text string
}

// Diff compares two texts by line, with their longest common subsequence. Texts of more than 1500
// lines are shown as completely replaced, because nobody reads such a long comparison.
func Diff(before, after string) []DiffLine {
	a, b := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	const most = 1500
	var lines []DiffLine
	if len(a) > most || len(b) > most {
		for _, l := range a {
			lines = append(lines, DiffLine{"del", l})
		}
		for _, l := range b {
			lines = append(lines, DiffLine{"ins", l})
		}
		return lines
	}
	common := longestCommon(a, b)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && sameLine(a[i], b[j]):
			lines = append(lines, DiffLine{"", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, DiffLine{"del", a[i]})
			i++
		default:
			lines = append(lines, DiffLine{"ins", b[j]})
			j++
		}
	}
	return lines
}

// sameLine compares two lines of JSON. It ignores a comma at the end, because the comma depends on
// the next line.
func sameLine(a, b string) bool {
	return strings.TrimSuffix(a, ",") == strings.TrimSuffix(b, ",")
}

// longestCommon returns a table: the entry [i][j] is the length of the longest common subsequence
// of a[i:] and b[j:].
func longestCommon(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if sameLine(a[i], b[j]) {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	return n
}
