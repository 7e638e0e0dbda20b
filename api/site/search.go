package site

import (
	"slices"
	"strings"
	"sync"
)

// Limits of a search.
const (
	found    = 50 // largest number of pages in the result
	maxWords = 10 // words of a question that count; the rest is ignored
)

// index contains the texts of a page in lower case, for the search. It is built once, at the first
// search, because building it for each request took 9 ms.
type index struct {
	once                     sync.Once
	title, description, text string
}

func (p *Page) index() *index {
	p.searched.once.Do(func() {
		p.searched.title = strings.ToLower(p.Title + " " + p.Path)
		p.searched.description, p.searched.text = strings.ToLower(p.Description), strings.ToLower(p.Markdown)
	})
	return &p.searched
}

// Search lists the pages that contain every word of a question, best match first. more reports
// whether there are further ones. kind restricts the search to pages of one type, unless it is
// empty. Case is ignored, and a word also matches a part of a word.
func (s *Site) Search(question, kind string) (pages []*Page, more bool) {
	words := strings.Fields(strings.ToLower(question))
	if len(words) == 0 {
		return nil, false
	}
	words = words[:min(len(words), maxWords)]
	type hit struct {
		page *Page
		rank int
	}
	var hits []hit
	for _, p := range s.Pages {
		if kind != "" && p.Type != kind {
			continue
		}
		if rank := p.holds(words); rank > 0 {
			hits = append(hits, hit{p, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.rank - a.rank })
	for _, h := range hits[:min(len(hits), found)] {
		pages = append(pages, h.page)
	}
	return pages, len(hits) > found
}

// holds returns the rank of a page for these words, or 0 if the page lacks one of them. A word
// counts most in the title, less in the description, and least in the text.
func (p *Page) holds(words []string) (rank int) {
	in := p.index()
	for _, word := range words {
		switch {
		case strings.Contains(in.title, word):
			rank += 100
		case strings.Contains(in.description, word):
			rank += 10
		case strings.Contains(in.text, word):
			rank++
		default:
			return 0
		}
	}
	return rank
}
