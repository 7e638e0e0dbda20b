package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Progress is a line of a terminal that says how far a command is, until something else
// is written. A nil Progress, where stderr is no terminal, shows nothing.
type Progress struct {
	to    *os.File
	mu    sync.Mutex // guards shown
	shown int        // columns
}

// ProgressOn returns the line on standard error if that is a terminal, and nil otherwise.
func ProgressOn(stderr io.Writer) *Progress {
	if file, is := stderr.(*os.File); is && IsTerminal(file) {
		return &Progress{to: file}
	}
	return nil
}

// Say replaces the text of the line.
func (p *Progress) Say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := []rune(Printable(fmt.Sprintf(format, args...)))
	text = text[:min(len(text), WidthOf(p.to)-1)] // a second line would stay
	shown := Columns(string(text))
	fmt.Fprintf(p.to, "\r%s%s", string(text), strings.Repeat(" ", max(0, p.shown-shown)))
	p.shown = shown
}

// End removes the line. What is written next begins at the left.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown > 0 {
		fmt.Fprintf(p.to, "\r%s\r", strings.Repeat(" ", p.shown))
		p.shown = 0
	}
}
