//go:build unix

package faults

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json"
)

// acknowledgement is a call that the service answered with 200 or 201.
type acknowledgement struct {
	Kind    string // one of the kinds of calls
	ID      string // id of the call; a repeated call has the same id
	Method  string
	Path    string
	Headers map[string]string
	Body    string
	Answer  string
}

// journal records the answers that clients got, in memory and in a file that the service does not
// use. The file is synced after each line.
type journal struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]acknowledgement // acknowledgements by kind and id
	kinds map[string]int
}

func newJournal(dir string) (*journal, error) {
	file, err := os.Create(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	return &journal{file: file, known: map[string]acknowledgement{}, kinds: map[string]int{}}, nil
}

// note records an answer before the client continues. It returns an error if the call was answered
// before with other bytes.
func (j *journal) note(a acknowledgement) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	at := a.Kind + " " + a.ID
	if before, ok := j.known[at]; ok {
		if before.Answer != a.Answer {
			return fmt.Errorf("%s got two different answers", at)
		}
		return nil
	}
	w := bufio.NewWriter(j.file)
	w.Write(text)
	w.WriteByte('\n')
	if err := w.Flush(); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.known[at] = a
	j.kinds[a.Kind]++
	return nil
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.known)
}

// counts returns the number of answered calls of each kind.
func (j *journal) counts() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := map[string]int{}
	for kind, n := range j.kinds {
		counts[kind] = n
	}
	return counts
}

// compare repeats every acknowledged call and returns the first answer that differs as an error.
func (j *journal) compare(ask func(acknowledgement) (status int, answer string, err error)) error {
	for at, a := range j.known {
		status, answer, err := ask(a)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		case a.Kind == kindKey && status == http.StatusUnauthorized, a.Kind == kindSignIn && status != http.StatusOK:
			return fmt.Errorf("%s is lost: the service answers %d", at, status)
		case a.Kind == kindKey || a.Kind == kindSignIn:
		case status != http.StatusOK:
			return fmt.Errorf("%s is lost: the service answers %d %s", at, status, answer)
		case answer != a.Answer:
			return fmt.Errorf("%s has changed\n now %s\n was %s", at, answer, a.Answer)
		}
	}
	return nil
}
