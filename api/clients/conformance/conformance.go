// Package conformance plays the specification of the clients' behaviour. cases.json contains the
// cases: what a program does with the client, the answers to its requests in order, and the
// expected outcome. answers.json contains the signed records that the cases name; a test generates
// it.
//
// The clients in Go, TypeScript and Python each have a small driver that runs a case. All of them
// run against this server, which also checks the outcome, so that the checks are written only
// once:
//
//	POST /start {"case": "gate: low runs"}            {"session": "7"}
//	ANY  /7/countersign.example/api/...               the next answer of the case
//	POST /end/7 {"ran": 1, "error": "", ...}          {"problems": []}
//
// A driver sends each request of its client for https://HOST/PATH to /SESSION/HOST/PATH of this
// server.
package conformance

import (
	"bytes"
	_ "embed" // for the two JSON files
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

// File is the content of cases.json.
type File struct {
	About   string                     `json:"about"`
	Now     string                     `json:"now"`     // time of the client's clock when a case starts
	OrgID   string                     `json:"orgId"`   // organization of the client
	Intents map[string]json.RawMessage `json:"intents"` // by name
	Actions map[string]json.RawMessage `json:"actions"` // by name
	Offers  map[string]json.RawMessage `json:"offers"`  // seller's 402 answers, by name
	Cases   []Case                     `json:"cases"`
	Keys    json.RawMessage            `json:"keys"` // trusted keys, from answers.json
}

// Case is one use of a client by a program.
type Case struct {
	Name string `json:"name"`
	// Do is gate, require, decide, approved (decide, wait for approval, execute) or pay.
	Do string `json:"do"`

	Action string `json:"action,omitempty"` // name of an action; empty means "command"
	Intent string `json:"intent,omitempty"` // name of an intent; empty means "tool"
	Key    string `json:"key,omitempty"`    // idempotency key; empty means "order-1", and "none" means that the client generates one

	URL     string `json:"url,omitempty"`     // base URL; empty means https://countersign.example
	Medium  string `json:"medium,omitempty"`  // "run" sets this option of the client
	Keys    string `json:"keys,omitempty"`    // "none" means that the client has no keys
	OrgID   string `json:"orgId,omitempty"`   // organization of the client, if it differs from the file's
	Now     string `json:"now,omitempty"`     // time, if it differs from the file's
	Timeout int    `json:"timeout,omitempty"` // time-out of one attempt in milliseconds
	Wait    int    `json:"wait,omitempty"`    // time to wait for approval in milliseconds
	Fn      string `json:"fn,omitempty"`      // "throws" means that the guarded function fails
	Signer  string `json:"signer,omitempty"`  // signer for pay: honest, otherOffer, otherRecipient, otherAmount, unreadable
	Again   string `json:"again,omitempty"`   // execute: execute one decision twice; decide: decide and execute twice; atOnce: execute one decision twice in parallel

	Exchange []Exchange `json:"exchange"`
	Must     Must       `json:"must"`
}

// Exchange is one expected request, with its answer.
type Exchange struct {
	Request string          `json:"request"`         // such as "POST /api/assurance/decisions", or with the host if it is not the service: "GET api.weather.example/v1/forecast"
	Sends   json.RawMessage `json:"sends,omitempty"` // members that the body must contain
	Answer  json.RawMessage `json:"answer,omitempty"`
	// Fault is silence (no answer), cut (the connection ends), half (half of the answer), stall
	// (half of the answer, and then nothing) or trickle (white space for a long time, and then the
	// answer).
	Fault string `json:"fault,omitempty"`
	Times int    `json:"times,omitempty"` // number of repetitions; 0 means 1
}

// Answer is the answer to a request.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // JSON; a string means a body that is not JSON
	Offer   string            `json:"offer,omitempty"`
}

// Must is the expected outcome of a case.
type Must struct {
	Ran   int    `json:"ran"`             // number of calls of the guarded function
	Error string `json:"error,omitempty"` // code of the error; "fn" means the function's own error
	Says  string `json:"says,omitempty"`  // text that the error's message must contain
	// Result means that the error contains the result of the function.
	Result     bool   `json:"result,omitempty"`
	UpgradeURL string `json:"upgradeUrl,omitempty"`
	Status     int    `json:"status,omitempty"` // HTTP status of the error; 0 means not compared
	Waits      []int  `json:"waits,omitempty"`  // waits in milliseconds, in order
}

// Outcome is the outcome that a driver observed.
type Outcome struct {
	Ran        int    `json:"ran"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	Result     bool   `json:"result"`
	UpgradeURL string `json:"upgradeUrl"`
	Status     int    `json:"status"`
	Waits      []int  `json:"waits"`
	Unchanged  bool   `json:"unchanged"` // the function's argument equals the decided intent
}

// Load reads cases.json and answers.json.
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

// Server plays cases. Several can run at once.
type Server struct {
	file    File
	answers map[string]Answer
	mu      sync.Mutex // protects the fields below
	last    int
	running map[string]*session
}

// session is one running case.
type session struct {
	name     string
	do       string
	exchange []Exchange // exchanges that are still expected
	must     Must
	before   string // previous request, with its body and its key
	problems []string
}

// NewServer returns a server that plays the cases in the two files.
func NewServer() (*Server, error) {
	file, answers, err := Load()
	return &Server{file: file, answers: answers, running: map[string]*session{}}, err
}

// ServeHTTP starts a case, answers a request of a case, or ends a case.
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
	_ = json.NewEncoder(w).Encode(value) // if this fails, the driver has disconnected
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
	http.Error(w, "the case does not exist", http.StatusNotFound)
}

// play answers a client's request with the next answer of its case.
func (s *Server) play(w http.ResponseWriter, r *http.Request, id, rest string) {
	body, _ := io.ReadAll(r.Body)
	host, path, _ := strings.Cut(rest, "/")
	line := r.Method + " /" + path
	if host != "countersign.example" {
		line = r.Method + " " + host + "/" + path
	}
	e, ok := s.next(id, line, r, body)
	if !ok {
		http.Error(w, `{"error":"the case does not expect this request at this point"}`, http.StatusTeapot)
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
			time.Sleep(10 * time.Millisecond) // simulates a slow server
		}
		_, _ = w.Write(text) // the client may have disconnected
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Status)
		_, _ = w.Write(text)
	}
}

// answerOf returns the answer of an exchange, which may be a name, and its body.
func (s *Server) answerOf(e Exchange) (Answer, []byte) {
	var answer Answer
	var name string
	if json.Unmarshal(e.Answer, &name) == nil && name != "" {
		answer = s.answers[name]
	} else if len(e.Answer) > 0 {
		_ = json.Unmarshal(e.Answer, &answer) // no error: TestCasesAreWellFormed has parsed it
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

// next returns the next exchange of a case, if the request is the expected one.
func (s *Server) next(id, line string, r *http.Request, body []byte) (Exchange, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	played := s.running[id]
	if played == nil {
		return Exchange{}, false
	}
	if len(played.exchange) == 0 || played.exchange[0].Request != line {
		played.problem("the request was not expected: %s", line)
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

// look checks that the request has everything that every request must have, and the members that
// the case requires.
func (p *session) look(e Exchange, line string, r *http.Request, body []byte) {
	key := r.Header.Get("Idempotency-Key")
	ours := strings.Contains(line, " /api/")
	switch {
	case line == "POST /api/agent-services/action-safety/quick" && (key == "" || r.Header.Get("X-API-Key") == ""):
		p.problem("%s lacks Idempotency-Key or X-API-Key", line)
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
	unsigned := line + "\n\n\n" // beginning of the request with which a client asks a seller for the price, before it pays
	if strings.HasPrefix(p.before, line+"\n") && p.before != same && (ours || !strings.HasPrefix(p.before, unsigned)) {
		p.problem("%s was repeated with another body, key or payment", line)
	}
	if p.before = same; p.do == "approved" || line[:3] == "GET" && ours {
		p.before = "" // the next request need not repeat this one, because a client asks again for approvals and for the state of a decision
	}
	if len(e.Sends) == 0 {
		return
	}
	var want, got map[string]any
	if err := json.Unmarshal(e.Sends, &want); err != nil {
		p.problem("sends: %v", err)
		return
	}
	_ = json.Unmarshal(body, &got) // a body that is not an object has none of the members
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

// read parses a request like the service.
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

// end checks the outcome of a case.
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
		http.Error(w, "the session does not exist", http.StatusNotFound)
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
		p.problem("the argument of the function differs from the decided intent")
	}
	if got.Error != must.Error {
		p.problem("the error is %q (%s), and must be %q", got.Error, got.Message, must.Error)
	}
	if !strings.Contains(got.Message, must.Says) {
		p.problem("the message is %q, and must contain %q", got.Message, must.Says)
	}
	if must.Status != 0 && got.Status != must.Status {
		p.problem("the status of the error is %d, and must be %d", got.Status, must.Status)
	}
	if got.UpgradeURL != must.UpgradeURL {
		p.problem("upgradeUrl is %q, and must be %q", got.UpgradeURL, must.UpgradeURL)
	}
	if must.Result != got.Result {
		p.problem("the error contains the result: %t, expected: %t", got.Result, must.Result)
	}
	if must.Waits != nil && fmt.Sprint(got.Waits) != fmt.Sprint(must.Waits) {
		p.problem("the client waits %v, and must wait %v", got.Waits, must.Waits)
	}
	for _, e := range p.exchange {
		if e.Fault == "silence" || e.Fault == "stall" || e.Fault == "trickle" {
			continue // on a busy machine, an attempt may time out before its request is sent
		}
		p.problem("the client did not send this request: %s", e.Request)
	}
}
