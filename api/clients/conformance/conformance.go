// Package conformance plays the one description of how a client of the service must
// behave. cases.json holds the cases: what a program does with the client, what the
// other side answers to each request, in order, and what must come of it. answers.json
// holds the signed records that the cases name; a test makes it.
//
// The clients in Go, TypeScript and Python each have a small driver that does what a
// case says. All of them run against this server, which also judges, so that nothing is
// judged three times:
//
//	POST /start {"case": "gate: low runs"}            {"session": "7"}
//	ANY  /7/countersign.example/api/...               the next answer of the case
//	POST /end/7 {"ran": 1, "error": "", ...}          {"problems": []}
//
// A driver sends each request of its client, whose address is https://HOST/PATH, to
// /SESSION/HOST/PATH of this server.
package conformance

import (
	"bytes"
	_ "embed" // the two files
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
)

//go:embed cases.json
var casesText []byte

//go:embed answers.json
var answersText []byte

// File is cases.json.
type File struct {
	About   string                     `json:"about"`
	Now     string                     `json:"now"`     // the clock of the client when a case begins
	OrgID   string                     `json:"orgId"`   // the organization of the client
	Intents map[string]json.RawMessage `json:"intents"` // by name
	Actions map[string]json.RawMessage `json:"actions"` // by name
	Offers  map[string]json.RawMessage `json:"offers"`  // what sellers answer with 402, by name
	Cases   []Case                     `json:"cases"`
	Keys    json.RawMessage            `json:"keys"` // the trusted keys, from answers.json
}

// Case is one thing that a program does with a client.
type Case struct {
	Name string `json:"name"`
	// Do is gate, require, decide, approved (decide, wait for a person, execute) or pay.
	Do string `json:"do"`

	Action string `json:"action,omitempty"` // name of an action; default: command
	Intent string `json:"intent,omitempty"` // name of an intent; default: tool
	Key    string `json:"key,omitempty"`    // idempotency key; default: order-1; "none": the client makes one

	URL     string `json:"url,omitempty"`     // another address than https://countersign.example
	Medium  string `json:"medium,omitempty"`  // "run": the client is made with it
	Keys    string `json:"keys,omitempty"`    // "none": the client is made without keys
	OrgID   string `json:"orgId,omitempty"`   // another organization than that of the file
	Now     string `json:"now,omitempty"`     // another time than that of the file
	Timeout int    `json:"timeout,omitempty"` // of one attempt, in milliseconds
	Wait    int    `json:"wait,omitempty"`    // how long approved waits, in milliseconds
	Fn      string `json:"fn,omitempty"`      // "throws": the guarded function fails
	Signer  string `json:"signer,omitempty"`  // of pay: honest, otherOffer, otherRecipient, otherAmount, unreadable
	Again   string `json:"again,omitempty"`   // execute: one decision twice; decide: decide and execute twice; atOnce: one decision twice in parallel

	Exchange []Exchange `json:"exchange"`
	Must     Must       `json:"must"`
}

// Exchange is one request that must come next, and what it is answered.
type Exchange struct {
	Request string          `json:"request"`         // "POST /api/assurance/decisions", or with a host
	Sends   json.RawMessage `json:"sends,omitempty"` // members that the body must have
	Answer  json.RawMessage `json:"answer,omitempty"`
	// Fault is silence (no answer), cut (the connection ends), half (half of the answer),
	// stall (half of it, and then nothing) or trickle (white space for long, and then the answer).
	Fault string `json:"fault,omitempty"`
	Times int    `json:"times,omitempty"` // default: once
}

// Answer is what a request is answered with.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // a JSON text, or a string for what is none
	Offer   string            `json:"offer,omitempty"`
}

// Must is what must come of a case.
type Must struct {
	Ran   int    `json:"ran"`             // how often the guarded function ran
	Error string `json:"error,omitempty"` // code of the error; "fn": the function's own
	Says  string `json:"says,omitempty"`  // the error's message has this in it
	// Result: the error carries the result of the function.
	Result     bool   `json:"result,omitempty"`
	UpgradeURL string `json:"upgradeUrl,omitempty"`
	Status     int    `json:"status,omitempty"` // HTTP status that the error carries; 0: not compared
	Waits      []int  `json:"waits,omitempty"`  // milliseconds, in order
}

// Outcome is what a driver saw.
type Outcome struct {
	Ran        int    `json:"ran"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	Result     bool   `json:"result"`
	UpgradeURL string `json:"upgradeUrl"`
	Status     int    `json:"status"`
	Waits      []int  `json:"waits"`
	Unchanged  bool   `json:"unchanged"` // what the function was given is what was decided about
}

// Load reads the two files.
func Load() (File, map[string]Answer, error) {
	var f File
	var signed struct {
		Keys    json.RawMessage   `json:"keys"`
		Answers map[string]Answer `json:"answers"`
	}
	if err := decode(casesText, &f); err != nil {
		return f, nil, fmt.Errorf("cases.json: %w", err)
	}
	if err := decode(answersText, &signed); err != nil {
		return f, nil, fmt.Errorf("answers.json: %w", err)
	}
	f.Keys = signed.Keys
	return f, signed.Answers, nil
}

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Server plays cases, any number of them at once.
type Server struct {
	file    File
	answers map[string]Answer
	mu      sync.Mutex // guards what follows
	last    int
	running map[string]*session
}

// session is one case that is being played.
type session struct {
	name     string
	do       string
	exchange []Exchange // what is still to come
	must     Must
	before   string // the request before, with its body and its key
	problems []string
}

// NewServer makes a server of the two files.
func NewServer() (*Server, error) {
	file, answers, err := Load()
	return &Server{file: file, answers: answers, running: map[string]*session{}}, err
}

// ServeHTTP starts a case, plays it, or ends it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "file":
		reply(w, s.file)
	case "start":
		s.start(w, r)
	case "end":
		s.end(w, r, rest)
	default:
		s.play(w, r, first, rest)
	}
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the driver is gone if this fails
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Case string `json:"case"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, c := range s.file.Cases {
		if c.Name != in.Case {
			continue
		}
		played := &session{name: c.Name, do: c.Do, must: c.Must}
		for _, e := range c.Exchange {
			for range max(e.Times, 1) {
				played.exchange = append(played.exchange, e)
			}
		}
		s.mu.Lock()
		s.last++
		id := strconv.Itoa(s.last)
		s.running[id] = played
		s.mu.Unlock()
		reply(w, map[string]string{"session": id})
		return
	}
	http.Error(w, "there is no such case", http.StatusNotFound)
}

// play answers a request of a client with the next answer of its case.
func (s *Server) play(w http.ResponseWriter, r *http.Request, id, rest string) {
	body, _ := io.ReadAll(r.Body)
	host, path, _ := strings.Cut(rest, "/")
	line := r.Method + " /" + path
	if host != "countersign.example" {
		line = r.Method + " " + host + "/" + path
	}
	e, ok := s.next(id, line, r, body)
	if !ok {
		http.Error(w, `{"error":"the case has no such request here"}`, http.StatusTeapot)
		return
	}
	if e.Fault == "silence" {
		<-r.Context().Done()
		return
	}
	answer, text := s.answerOf(e)
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	if answer.Offer != "" {
		w.Header().Set("PAYMENT-REQUIRED", base64.StdEncoding.EncodeToString(text))
	}
	switch e.Fault {
	case "cut":
		panic(http.ErrAbortHandler)
	case "half", "stall":
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(answer.Status)
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		if e.Fault == "half" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	case "trickle":
		for range 300 {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond) // it is a slow server
		}
		_, _ = w.Write(text) // for a client that is still there
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Status)
		_, _ = w.Write(text)
	}
}

// answerOf resolves the name of an answer.
func (s *Server) answerOf(e Exchange) (Answer, []byte) {
	var answer Answer
	var name string
	if json.Unmarshal(e.Answer, &name) == nil && name != "" {
		answer = s.answers[name]
	} else if len(e.Answer) > 0 {
		_ = json.Unmarshal(e.Answer, &answer) // TestCasesAreWellFormed has read it
	}
	text := []byte(answer.Body)
	var raw string
	if json.Unmarshal(text, &raw) == nil {
		text = []byte(raw)
	}
	if answer.Offer != "" {
		text = s.file.Offers[answer.Offer]
	}
	if raw == "huge" {
		text = bytes.Repeat([]byte(" "), 9<<20)
	}
	return answer, text
}

// next takes the next exchange of a case, if the request is the one that must come.
func (s *Server) next(id, line string, r *http.Request, body []byte) (Exchange, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	played := s.running[id]
	if played == nil {
		return Exchange{}, false
	}
	if len(played.exchange) == 0 || played.exchange[0].Request != line {
		played.problem("an unexpected request: %s", line)
		return Exchange{}, false
	}
	e := played.exchange[0]
	played.exchange = played.exchange[1:]
	played.look(e, line, r, body)
	return e, true
}

func (p *session) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// look checks that a request has what every request must have, and the members that the
// case names.
func (p *session) look(e Exchange, line string, r *http.Request, body []byte) {
	key := r.Header.Get("Idempotency-Key")
	ours := strings.Contains(line, " /api/")
	switch {
	case line == "POST /api/agent-services/action-safety/quick" && (key == "" || r.Header.Get("X-API-Key") == ""):
		p.problem("%s has no Idempotency-Key or no X-API-Key", line)
	case strings.Contains(line, " /api/assurance/") && r.Header.Get("Authorization") != "Bearer svco_test":
		p.problem("%s has no token", line)
	case !ours && r.Header.Get("Authorization") != "":
		p.problem("the token was sent to another host: %s", line)
	}
	if err := read(line, body); err != nil {
		p.problem("%s: the service would refuse it: %v", line, err)
	}
	signature := r.Header.Get("PAYMENT-SIGNATURE")
	same := line + "\n" + key + "\n" + signature + "\n" + string(body)
	unsigned := line + "\n\n\n" // a seller is asked without a payment before it is asked with one
	if strings.HasPrefix(p.before, line+"\n") && p.before != same && (ours || !strings.HasPrefix(p.before, unsigned)) {
		p.problem("%s was sent again with another body, key or payment", line)
	}
	if p.before = same; p.do == "approved" || line[:3] == "GET" && ours {
		p.before = "" // asked again on purpose
	}
	if len(e.Sends) == 0 {
		return
	}
	var want, got map[string]any
	if err := json.Unmarshal(e.Sends, &want); err != nil {
		p.problem("sends: %v", err)
		return
	}
	_ = json.Unmarshal(body, &got) // what is no object has none of the members
	if signature != "" {
		text, _ := base64.StdEncoding.DecodeString(signature)
		_ = json.Unmarshal(text, &got)
	}
	for name, value := range want {
		w, _ := json.Marshal(value)
		if g, _ := json.Marshal(got[name]); !bytes.Equal(w, g) {
			p.problem("%s: %s is %s, and must be %s", line, name, g, w)
		}
	}
}

// read reads a request as the service does.
func read(line string, body []byte) error {
	var err error
	switch line {
	case "POST /api/agent-services/action-safety/quick":
		_, err = actionrisk.Quick.Evaluate(body)
	case "POST /api/assurance/decisions":
		_, err = assurance.ParseDecision(body)
	case "POST /api/assurance/receipts":
		_, err = assurance.ParseReceipt(body)
	}
	return err
}

// end judges what came of a case.
func (s *Server) end(w http.ResponseWriter, r *http.Request, id string) {
	var got Outcome
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running[id]
	if p == nil {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	delete(s.running, id)
	p.judge(got)
	reply(w, map[string][]string{"problems": append([]string{}, p.problems...)})
}

func (p *session) judge(got Outcome) {
	must := p.must
	if got.Ran != must.Ran {
		p.problem("the function ran %d times, and must run %d times", got.Ran, must.Ran)
	}
	if got.Ran > 0 && !got.Unchanged {
		p.problem("the function was given something else than what was decided about")
	}
	if got.Error != must.Error {
		p.problem("the error is %q (%s), and must be %q", got.Error, got.Message, must.Error)
	}
	if !strings.Contains(got.Message, must.Says) {
		p.problem("the message is %q, and must say %q", got.Message, must.Says)
	}
	if must.Status != 0 && got.Status != must.Status {
		p.problem("the status of the error is %d, and must be %d", got.Status, must.Status)
	}
	if got.UpgradeURL != must.UpgradeURL {
		p.problem("upgradeUrl is %q, and must be %q", got.UpgradeURL, must.UpgradeURL)
	}
	if must.Result != got.Result {
		p.problem("the error carries the result: %t, and must: %t", got.Result, must.Result)
	}
	if must.Waits != nil && fmt.Sprint(got.Waits) != fmt.Sprint(must.Waits) {
		p.problem("the client waits %v, and must wait %v", got.Waits, must.Waits)
	}
	for _, e := range p.exchange {
		if e.Fault == "silence" || e.Fault == "stall" || e.Fault == "trickle" {
			continue // on a busy machine an attempt may be over before it is sent
		}
		p.problem("this request never came: %s", e.Request)
	}
}
