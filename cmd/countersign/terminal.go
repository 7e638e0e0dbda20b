package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/countersign/countersign/cmd/countersign/screen"
)

// wrapped is a text for people: on a terminal its lines are as long as it is wide. In a
// pipe a line stays a line.
func (o *output) wrapped(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if o.width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if screen.Columns(line) <= o.width {
			continue
		}
		indent := strings.Repeat(" ", hangingIndent(line, o.width))
		lines[i] = strings.Join(screen.WrapWords(line, o.width, indent), "\n")
	}
	return strings.Join(lines, "\n")
}

var gaps = regexp.MustCompile(`^ +|  +`)

// hangingIndent is where a line goes on below itself: where its last column begins that
// does so in its left half.
func hangingIndent(line string, width int) int {
	indent := 0
	for _, gap := range gaps.FindAllStringIndex(line, -1) {
		if at := screen.Columns(line[:gap[1]]); at <= width/2 {
			indent = at
		}
	}
	return indent
}

// progressLine is a line of a terminal that says how far a command is, until something
// else is said. No line, where nobody looks, is nil.
type progressLine struct {
	to    *os.File
	mu    sync.Mutex // guards shown
	shown int        // columns
}

// progressOn is the line on standard error, if that is a terminal.
func progressOn(stderr io.Writer) *progressLine {
	if file, is := stderr.(*os.File); is && screen.IsTerminal(file) {
		return &progressLine{to: file}
	}
	return nil
}

// say shows a text in the place of the one before.
func (p *progressLine) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := []rune(screen.Printable(fmt.Sprintf(format, args...)))
	text = text[:min(len(text), screen.WidthOf(p.to)-1)] // a second line would stay
	shown := screen.Columns(string(text))
	fmt.Fprintf(p.to, "\r%s%s", string(text), strings.Repeat(" ", max(0, p.shown-shown)))
	p.shown = shown
}

// end takes the line away; what is written next begins at the left.
func (p *progressLine) end() {
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
