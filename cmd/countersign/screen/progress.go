package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// Progress is a line on the terminal that shows the progress of a command. It is removed before
// other output. A nil Progress shows nothing; it is used if standard error is not a terminal.
type Progress struct {
	to    *os.File
	mu    sync.Mutex // guards shown
	shown int        // width of the shown text in columns
}

// ProgressOn returns a progress line on standard error, or nil if that is not a terminal.
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
	text = text[:min(len(text), WidthOf(p.to)-1)] // a text that wraps to a second line could not be removed
	shown := Columns(string(text))
	fmt.Fprintf(p.to, "\r%s%s", string(text), strings.Repeat(" ", max(0, p.shown-shown)))
	p.shown = shown
}

// End removes the line, so that the next output begins in the first column.
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
