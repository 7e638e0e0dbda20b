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
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// The guard's log is a file of its own on this machine: one line of canonical JSON
// for each verdict, with secrets masked. Each line names the hash of the one
// before; the file beside it, gate.head, names the number and hash of the last, so
// that a log that was cut or edited is noticed. What cannot be logged is decided
// all the same: a full disk must not stop anybody's work.
const (
	logName  = "gate.log"
	headName = "gate.head"
	// The first push to a team's ledger makes the key of this machine, which signs what
	// is sent, and keeps where in the log it ended.
	KeyName    = "gate.key"
	pushedName = "gate.pushed"
)

// Log is the folder in which the log lies; empty: nothing is logged.
type Log string

// logHead is where the log ends, or where something has read it to.
type logHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
}

func (l Log) file(name string) string { return filepath.Join(string(l), name) }

// Append adds a line under a lock, so that guards that run at once make one chain.
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

// readHead reads a place in the log, which a file names; without one, its begin.
func readHead(place string) (head logHead, err error) {
	text, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &head)
	}
	return head, err
}

func (h logHead) keep(place string) error {
	text, err := canon.Marshal(h)
	if err != nil {
		return err
	}
	return files.Replace(place, text)
}

// Read reads the whole log and checks its chain. What is wrong with it is said in words;
// the lines are there nevertheless.
func (l Log) Read() (lines []guardlog.Line, wrong string, err error) {
	text, err := os.ReadFile(l.file(logName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("read the log: %w", err)
	}
	head, err := readHead(l.file(headName))
	if err != nil {
		wrong = "its end is not known: gate.head cannot be read"
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
		wrong = fmt.Sprintf("it ends at line %d, and had %d: its end was cut", last.Number, head.Number)
	}
	if err := scanner.Err(); err != nil {
		return nil, "", fmt.Errorf("read the log: %w", err)
	}
	return lines, wrong, nil
}

// Unsent are the lines behind the last one that was sent to a ledger. What the ledger has
// is asked of nobody: the place is kept beside the log, and the service refuses what does
// not follow.
func (l Log) Unsent() ([]guardlog.Line, error) {
	lines, wrong, err := l.Read()
	switch {
	case err != nil:
		return nil, err
	case wrong != "":
		return nil, fmt.Errorf("the log is not whole, so nothing is sent: %s; %s gate log shows it", wrong, Name)
	}
	sent, err := readHead(l.file(pushedName))
	switch {
	case err != nil:
		return nil, err
	case sent.Number == 0:
		return lines, nil
	case sent.Number > int64(len(lines)) || lines[sent.Number-1].Hash != sent.Hash:
		return nil, errors.New("the log is not the one that was sent before: it was replaced")
	}
	return lines[sent.Number:], nil
}

// Sent remembers the last line that was sent.
func (l Log) Sent(last guardlog.Line) error {
	return logHead{last.Number, last.Hash}.keep(l.file(pushedName))
}

// Stats are a log in numbers.
type Stats struct {
	Since  string `json:"since"`
	Calls  int    `json:"calls"`
	Passed int    `json:"passed"`
	Proven int    `json:"proven"` // prompts saved: proven read-only, so that the agent did not ask either
	Asked  int    `json:"asked"`
	Denied int    `json:"denied"`
	// Observed would have been asked about or denied, where settings say that nothing is.
	Observed int            `json:"observed"`
	Unseen   int            `json:"unseen"` // tools that ran without a verdict
	Rules    map[string]int `json:"rules"`  // how often each was asked about or denied
	Whole    bool           `json:"whole"`
}

// Count counts the lines since a moment.
func Count(lines []guardlog.Line, since time.Time) Stats {
	s := Stats{Since: since.UTC().Format(time.RFC3339), Rules: map[string]int{}}
	for _, l := range lines {
		if at, err := time.Parse(time.RFC3339, l.At); err != nil || at.Before(since) || l.Session == doctorSession {
			continue
		}
		decision := Decision(l.Decision)
		switch decision {
		case Canary:
			continue
		case Unseen:
			s.Unseen++
			continue
		case Proven:
			s.Proven++
		case Ask:
			s.Asked++
		case Deny:
			s.Denied++
		case Observed:
			s.Observed++
		default:
			s.Passed++
		}
		s.Calls++
		if decision == Ask || decision == Deny || decision == Observed {
			for _, rule := range l.Rules {
				s.Rules[rule]++
			}
		}
	}
	return s
}

// seenWithin is how much of the log's end is looked through for a tool call.
const seenWithin = 256 << 10

// saw says whether the end of the log has a verdict on a tool call. A log that cannot be
// read has seen everything: it must not raise an alarm for itself.
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
