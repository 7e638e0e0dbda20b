package api

import (
	"net/http"
	"strconv"
	"strings"
)

// prefersMarkdown says whether a request would rather have Markdown than HTML.
// Who takes everything gets HTML.
func prefersMarkdown(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	markdown := weight(accept, "text/markdown")
	return markdown > 0 && markdown >= weight(accept, "text/html", "text/*", "*/*") && strings.Contains(strings.ToLower(accept), "text/markdown")
}

// weight is the q-value of the first of the names that a list of what is accepted
// holds (RFC 9110, 12.4.2); 0 for none. An empty list has none.
func weight(list string, names ...string) float64 {
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
