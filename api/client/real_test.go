package client_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/countersign/countersign/api/client"
)

// TestAgainstARealService tests the client against a running service, which .ci/clients/run starts
// with a policy that allows only the tool action_safety_quick_gate of the server countersign.
func TestAgainstARealService(t *testing.T) {
	address := os.Getenv("COUNTERSIGN_URL")
	if address == "" {
		t.Skip("COUNTERSIGN_URL is not set")
	}
	keys, err := os.ReadFile(os.Getenv("COUNTERSIGN_KEYS"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: address, APIKey: os.Getenv("COUNTERSIGN_KEY"), Token: os.Getenv("COUNTERSIGN_TOKEN"), OrgID: os.Getenv("COUNTERSIGN_ORG"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	ctx, ran := t.Context(), 0
	call := func(tool string) error {
		d, err := c.Decide(ctx, client.Intent{ServerID: "countersign", ToolName: tool, ToolArguments: map[string]any{"command": "ls", "n": 1.5, "none": map[string]any{}}}, client.Subject{})
		if err != nil {
			return err
		}
		return d.Execute(ctx, func(context.Context, client.Intent, *client.Evidence) error { ran++; return nil })
	}
	if err := call("action_safety_quick_gate"); err != nil || ran != 1 {
		t.Errorf("an allowed tool: %v, it ran %d times", err, ran)
	}
	var stopped *client.Error
	if err := call("list_products"); !errors.As(err, &stopped) || stopped.Code != client.Stopped || ran != 1 {
		t.Errorf("a denied tool: %v, it ran %d times", err, ran)
	}
	for command, code := range map[string]client.Code{"git status": "", "git push --force origin main": client.Stopped} {
		verdict, err := c.Gate(ctx, client.Action{Command: command})
		if err != nil {
			t.Fatal(err)
		}
		_, err = verdict.Require()
		if got := errors.As(err, &stopped); got != (code != "") || got && stopped.Code != code {
			t.Errorf("%s: %v", command, err)
		}
	}
}
