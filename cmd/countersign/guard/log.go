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

// The guard's log is a file on this machine with one line of canonical JSON for each verdict.
// Secrets are masked. Each line contains the hash of the previous one, and the file gate.head
// in the same folder contains the number and hash of the last line, so that a cut or edited log
// is noticed. An action that cannot be logged is still decided: a full disk must not stop the
// user's work.
const (
	logName  = "gate.log"
	headName = "gate.head"
	// The first push to a team's ledger creates this machine's key, which signs the reports,
	// and stores the position of the last line sent.
	KeyName    = "gate.key"
	pushedName = "gate.pushed"
)

// Log is the folder of the log; if empty, nothing is logged.
type Log string

// logHead is a position in the log: its end, or the last line that was sent.
type logHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

func (l Log) file(name string) string { return filepath.Join(string(l), name) }

// Append adds a line under a lock, so that concurrent guards write one chain.
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

// readHead reads a position from a file, or returns the beginning of the log if there is no
// file.
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

// Read reads the log and checks its chain. wrong describes the first fault; the lines are
// returned nevertheless.
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

// Unsent returns the lines after the last one that was sent to a ledger. It does not ask the
// ledger: the position is stored in the log's folder, and the service refuses lines that do not
// continue its own.
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

// Stats counts the decisions in a log.
type Stats struct {
	Since  string `json:"since"`
	Calls  int    `json:"calls"`
	Passed int    `json:"passed"`
	Proven int    `json:"proven"` // proven read-only, so that neither the guard nor the agent asked
	Asked  int    `json:"asked"`
	Denied int    `json:"denied"`
	// Observed counts actions that would have been asked about or denied if the settings did
	// not say that nothing is stopped.
	Observed int            `json:"observed"`
	Unseen   int            `json:"unseen"` // tools that ran without a verdict
	Rules    map[string]int `json:"rules"`  // how often each rule led to a question or denial
	Whole    bool           `json:"whole"`
}

// Count counts the lines since a moment.
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

// seenWithin is the length of the log's end that is searched for a tool call.
const seenWithin = 256 << 10

// saw reports whether the end of the log has a verdict on a tool call. It returns true if the
// log cannot be read, because that must not raise an alarm.
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
