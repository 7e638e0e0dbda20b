package guard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/guard/agents"
	"github.com/countersign/countersign/cmd/countersign/guard/launch"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// The guard's log is a file with one line of canonical JSON for each verdict; secrets are masked.
// Each line contains the hash of the line before, and the file gate.head in the same folder
// contains number and hash of the last line. So Read detects a truncated or edited log. If a line
// cannot be logged, for example because the disk is full, the guard still answers.
const (
	logName  = "gate.log"
	headName = "gate.head"
	// KeyName is the file of this machine's key, which signs reports to a ledger. pushedName is
	// the file with the position of the last line sent. The first push creates both.
	KeyName    = "gate.key"
	pushedName = "gate.pushed"
)

// Log is the folder of the log. If it is empty, nothing is logged.
type Log string

// logHead is the position of a line: the last one of the log, or the last one sent.
type logHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

func (l Log) file(name string) string { return filepath.Join(string(l), name) }

// Append adds a line to the log. A lock makes concurrent guards write one chain.
func (l Log) Append(line guardlog.Line) error {
	if err := os.MkdirAll(string(l), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(l.file(logName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := files.Lock(f); err != nil {
		return err
	}
	head, err := readHead(l.file(headName))
	if err != nil {
		return err
	}
	line.Number, line.Before = head.Number+1, head.Hash
	if line.Hash, err = line.Sum(); err != nil {
		return err
	}
	text, err := canon.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return logHead{line.Number, line.Hash}.keep(l.file(headName))
}

// readHead reads a position from a file. If there is no file, it returns the position before the
// first line.
func readHead(path string) (head logHead, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	return head, err
}

func (h logHead) keep(path string) error {
	text, err := canon.Marshal(h)
	if err != nil {
		return err
	}
	return files.Replace(path, text)
}

// Read returns the lines of the log and checks their chain. If it finds a fault, wrong describes
// the first one, otherwise wrong is empty.
func (l Log) Read() (lines []guardlog.Line, wrong string, err error) {
	text, err := os.ReadFile(l.file(logName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("read the log: %w", err)
	}
	head, err := readHead(l.file(headName))
	if err != nil {
		wrong = "the end of the log is not known: gate.head cannot be read"
	}
	var last logHead
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, maxEvent)
	for scanner.Scan() {
		var line guardlog.Line
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			return lines, fmt.Sprintf("line %d cannot be read", len(lines)+1), nil
		}
		hash, err := line.Sum()
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("read the log: %w", err)
		case wrong != "":
		case hash != line.Hash:
			wrong = fmt.Sprintf("line %d was edited", line.Number)
		case line.Number != last.Number+1 || line.Before != last.Hash:
			wrong = fmt.Sprintf("lines between %d and %d are missing", last.Number, line.Number)
		}
		last = logHead{line.Number, line.Hash}
		lines = append(lines, line)
	}
	if wrong == "" && last != head {
		wrong = fmt.Sprintf("the log ends at line %d of %d: its end was cut", last.Number, head.Number)
	}
	if err := scanner.Err(); err != nil {
		return nil, "", fmt.Errorf("read the log: %w", err)
	}
	return lines, wrong, nil
}

// Unsent returns the lines after the last one that was sent to a ledger. It reads that position
// from the log's folder and does not ask the ledger, which refuses lines that do not continue the
// last report.
func (l Log) Unsent() ([]guardlog.Line, error) {
	lines, wrong, err := l.Read()
	switch {
	case err != nil:
		return nil, err
	case wrong != "":
		return nil, fmt.Errorf("the log does not verify, so nothing is sent: %s (see %s gate log)", wrong, launch.Name)
	}
	sent, err := readHead(l.file(pushedName))
	switch {
	case err != nil:
		return nil, err
	case sent.Number == 0:
		return lines, nil
	case sent.Number > int64(len(lines)) || lines[sent.Number-1].Hash != sent.Hash:
		return nil, errors.New("this is not the log that was sent before: it was replaced")
	}
	return lines[sent.Number:], nil
}

// Sent stores the position of the last line that was sent.
func (l Log) Sent(last guardlog.Line) error {
	return logHead{last.Number, last.Hash}.keep(l.file(pushedName))
}

// Stats counts the decisions in a part of the log.
type Stats struct {
	Since  string `json:"since"`
	Calls  int    `json:"calls"`
	Passed int    `json:"passed"`
	Proven int    `json:"proven"` // answered with "allow" as proven read-only, so nobody was asked
	Asked  int    `json:"asked"`
	Denied int    `json:"denied"`
	// Observed counts actions that would have been asked about or denied, but the settings say to
	// block nothing.
	Observed int            `json:"observed"`
	Unseen   int            `json:"unseen"` // tools that ran without a verdict
	Rules    map[string]int `json:"rules"`  // number of asked, denied and observed actions, by rule
	Whole    bool           `json:"whole"`
}

// Count counts the decisions in lines since a time.
func Count(lines []guardlog.Line, since time.Time) Stats {
	s := Stats{Since: since.UTC().Format(time.RFC3339), Rules: map[string]int{}}
	for _, l := range lines {
		if at, err := time.Parse(time.RFC3339, l.At); err != nil || at.Before(since) || l.Session == agents.DoctorSession {
			continue
		}
		decision := agents.Decision(l.Decision)
		switch decision {
		case Canary:
			continue
		case Unseen:
			s.Unseen++
			continue
		case agents.Proven:
			s.Proven++
		case agents.Ask:
			s.Asked++
		case agents.Deny:
			s.Denied++
		case Observed:
			s.Observed++
		default:
			s.Passed++
		}
		s.Calls++
		if decision == agents.Ask || decision == agents.Deny || decision == Observed {
			for _, rule := range l.Rules {
				s.Rules[rule]++
			}
		}
	}
	return s
}

// seenWithin is the number of bytes at the end of the log that the method "saw" searches.
const seenWithin = 256 << 10

// saw reports whether the end of the log contains a verdict on a tool call. If the log cannot be
// read, it returns true, so that this raises no alarm.
func (l Log) saw(call string) bool {
	f, err := os.Open(l.file(logName))
	if err != nil {
		return true
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > seenWithin {
		if _, err := f.Seek(-seenWithin, io.SeekEnd); err != nil {
			return true
		}
	}
	text, err := io.ReadAll(f)
	quoted, err2 := json.Marshal(call)
	return err != nil || err2 != nil || bytes.Contains(text, append([]byte(`"call":`), quoted...))
}
