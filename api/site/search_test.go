package site

import "testing"

// TestASearchMakesNoIndexAgain checks that a search does not build the index again.
func TestASearchMakesNoIndexAgain(t *testing.T) {
	s := made(t)
	if pages, _ := s.Search("QUICK gate", ""); len(pages) == 0 || pages[0].Title != "Quick gate" {
		t.Errorf("%v", pages)
	}
	const ofTheQuestion = 5
	if made := testing.AllocsPerRun(5, func() { s.Search("no page Holds This Word", "") }); made > ofTheQuestion {
		t.Errorf("a search of %d pages makes %.0f allocations", len(s.Pages), made)
	}
}
