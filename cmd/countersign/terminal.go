package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// usualWidth is that of a terminal that does not say its own.
const usualWidth = 80

// widthOf is how many columns a terminal has: what COLUMNS says, as for help, or the
// terminal itself.
func widthOf(terminal *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n := columnsOf(terminal); n > 0 {
		return n
	}
	return usualWidth
}

// wrapped is a text for people: on a terminal its lines are as long as it is wide. In a
// pipe a line stays a line.
func (o *output) wrapped(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if o.width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columns(line) <= o.width {
			continue
		}
		indent := strings.Repeat(" ", hangingIndent(line, o.width))
		lines[i] = strings.Join(wrapWords(line, o.width, indent), "\n")
	}
	return strings.Join(lines, "\n")
}

var gaps = regexp.MustCompile(`^ +|  +`)

// hangingIndent is where a line goes on below itself: where its last column begins that
// does so in its left half.
func hangingIndent(line string, width int) int {
	indent := 0
	for _, gap := range gaps.FindAllStringIndex(line, -1) {
		if at := columns(line[:gap[1]]); at <= width/2 {
			indent = at
		}
	}
	return indent
}

// wrapWords breaks a line at spaces. A word that is wider stays whole: an id or an
// address is copied from there.
func wrapWords(line string, width int, indent string) (lines []string) {
	for {
		cut, at := 0, 0
		start := len(line) - len(strings.TrimLeft(line, " "))
		for i, r := range line {
			if r == ' ' && i > start && line[i-1] != ' ' && (at <= width || cut == 0) && strings.TrimSpace(line[i:]) != "" && i > len(indent) {
				cut = i
			}
			at += columns(string(r))
		}
		if at <= width || cut == 0 {
			return append(lines, line)
		}
		lines = append(lines, line[:cut])
		line = indent + strings.TrimLeft(line[cut:], " ")
	}
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
	if file, is := stderr.(*os.File); is && isTerminal(file) {
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
	text := []rune(printable(fmt.Sprintf(format, args...)))
	text = text[:min(len(text), widthOf(p.to)-1)] // a second line would stay
	shown := columns(string(text))
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
