package op

import (
	"net/http"
	"strconv"
	"strings"
)

// PrefersMarkdown reports whether a request prefers Markdown to HTML. If the request accepts
// everything, the result is false.
func PrefersMarkdown(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	markdown := Weight(accept, "text/markdown")
	return markdown > 0 && markdown >= Weight(accept, "text/html", "text/*", "*/*") && strings.Contains(strings.ToLower(accept), "text/markdown")
}

// Weight returns the q-value of the first of these names that an Accept header lists (RFC 9110,
// section 12.4.2). It returns 0 if the header lists none of them.
func Weight(list string, names ...string) float64 {
	for _, name := range names {
		for part := range strings.SplitSeq(list, ",") {
			media, parameters, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(media), name) {
				continue
			}
			for parameter := range strings.SplitSeq(parameters, ";") {
				key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
				if strings.EqualFold(key, "q") {
					q, err := strconv.ParseFloat(value, 64)
					if err != nil {
						return 0
					}
					return q
				}
			}
			return 1
		}
	}
	return 0
}
