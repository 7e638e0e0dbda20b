package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	apiservices "github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// packingCmd writes the stored texts of a ledger as samples for a compression dictionary (package
// ledger/packing):
//
//	bench packing samples
//	zstd --train samples/* -o ledger/packing/v1.dict --maxdict=32768 --dictID=1
//
// A ledger needs its dictionary for as long as the ledger exists. So existing dictionaries never
// change, and this command is only used to add another one.
type packingCmd struct {
	Folder   string   `arg:"" help:"A new folder for the samples."`
	Commands []string `help:"Files with one command per line, which the gate judges." default:"policy/actionrisk/testdata/everyday.txt,policy/actionrisk/testdata/siblings.txt"`
}

// Run writes one file for each payload and one for each encrypted box.
func (c *packingCmd) Run(ctx context.Context) error {
	if err := os.Mkdir(c.Folder, 0o777); err != nil {
		return err
	}
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	if err := c.use(ctx, service); err != nil {
		return err
	}
	samples, err := storedTexts(ctx, service)
	for i, sample := range samples {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.Folder, fmt.Sprintf("%05d", i)), sample, 0o666))
	}
	fmt.Printf("%d samples\n", len(samples))
	return err
}

// use makes the calls that fill the ledger: gate calls with many commands, the example of each
// service, and decisions.
func (c *packingCmd) use(ctx context.Context, service *rig.Service) error {
	calls := 0
	var caller accounts.Caller
	// call runs a service, with a new free key for every 20 calls.
	call := func(s policy.Service, body []byte) error {
		if calls++; calls%20 == 1 {
			issued, err := service.App.IssueFreeKey(ctx, fmt.Sprintf("packing-%d@example.com", calls), "")
			if err != nil {
				return err
			}
			if caller, err = service.App.Authenticate(ctx, issued.APIKey); err != nil {
				return err
			}
		}
		_, err := service.App.RunService(ctx, services.Call{Service: s, Caller: caller, Body: body})
		return err
	}
	// Run the example of each service.
	services := map[string]policy.Service{}
	for _, s := range apiservices.List() {
		services[s.Name] = s
		for range 8 {
			if err := call(s, []byte(s.Example)); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	// Ask the gate about every 16th command of the files.
	for _, name := range c.Commands {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			if n%16 != 0 || line == "" || line[0] == '#' {
				continue
			}
			body, err := canon.Marshal(map[string]string{"command": line, "environment": []string{"production", "staging", "development"}[n/16%3]})
			if err != nil {
				return err
			}
			for _, name := range []string{"action-safety/quick", "action-safety/run"} {
				var refused *policy.Error
				if err := call(services[name], body); err != nil && !errors.As(err, &refused) {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return service.Decisions(ctx, 200)
}

// storedTexts returns the payloads of a ledger and the plain texts of its encrypted boxes. It
// replaces ids and hashes by other random values that differ between events, because a dictionary
// must not contain random values.
func storedTexts(ctx context.Context, service *rig.Service) (texts [][]byte, err error) {
	for at := int64(0); ; {
		events, err := service.App.Ledger.Partitions()[0].After(ctx, at, 1000)
		if err != nil || len(events) == 0 {
			return texts, err
		}
		for _, e := range events {
			at = e.Position
			openings, err := service.App.Vault.Openings(ctx, e)
			if err != nil {
				return nil, err
			}
			texts = append(texts, ownWords(at, sealedBox.ReplaceAll(e.Payload, []byte(`"box":""`))))
			if len(openings) > 0 {
				sealed, err := openingsText(openings)
				if err != nil {
					return nil, err
				}
				texts = append(texts, ownWords(at, sealed))
			}
		}
	}
}

// openingsText returns the plain text of a box in canonical JSON.
func openingsText(openings []vault.Opening) ([]byte, error) {
	type opening struct {
		Pointer string         `json:"pointer"`
		Salt    []byte         `json:"salt"`
		Value   jsontext.Value `json:"value"`
	}
	inBox := make([]opening, len(openings))
	for i, o := range openings {
		inBox[i] = opening(o)
	}
	return canon.Marshal(inBox)
}

// sealedBox matches an encrypted box in a payload. The ledger does not compress the box together
// with the payload.
var sealedBox = regexp.MustCompile(`"box":"[^"]*"`)

// randomWord matches a hash, an id, a signature or a salt.
var randomWord = regexp.MustCompile(`[0-9a-f]{16,}|[0-9A-HJKMNP-TV-Z]{26}|[A-Za-z0-9+/]{40,}={0,2}`)

// ownWords replaces each match of randomWord by another word of the same length. Within one event,
// equal words stay equal.
func ownWords(position int64, text []byte) []byte {
	return randomWord.ReplaceAllFunc(text, func(word []byte) []byte {
		mac := hmac.New(sha256.New, binary.BigEndian.AppendUint64(nil, uint64(position)))
		mac.Write(word)
		sum := mac.Sum(nil)
		own := base64.StdEncoding.EncodeToString(slices.Concat(sum, sum, sum, sum))
		switch {
		case strings.Trim(string(word), "0123456789abcdef") == "":
			own = strings.Repeat(hex.EncodeToString(sum), 1+len(word)/64)
		case len(word) == 26:
			own = strings.ToUpper(hex.EncodeToString(sum))
		}
		return []byte(own[:min(len(own), len(word))])
	})
}
