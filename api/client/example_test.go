package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/countersign/countersign/api/client"
)

func ExampleClient_Gate() {
	// Set URL and APIKey instead of Offline to let the service evaluate.
	c, err := client.New(client.Options{Offline: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, command := range []string{"git status", "git push --force origin main"} {
		verdict, err := c.Gate(context.Background(), client.Action{Command: command})
		if err != nil {
			log.Fatal(err)
		}
		err = verdict.Run(func(a client.Action) error {
			fmt.Println("running", a.Command)
			return nil
		})
		var stopped *client.Error
		if errors.As(err, &stopped) {
			fmt.Println(stopped.Code, verdict.RuleIDs) // show the message of this error to the model
		}
	}
	// Output:
	// running git status
	// stopped [git.push.force-protected]
}

// This example executes a tool call that may need a person's approval. Execute reports the outcome
// even if the call fails.
func ExampleDecision_Execute() {
	keys, err := os.ReadFile("jwks.json") // saved from /.well-known/jwks.json
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "https://countersign.example", Token: os.Getenv("COUNTERSIGN_TOKEN"), OrgID: os.Getenv("COUNTERSIGN_ORG"), Keys: keys})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	decision, err := c.Decide(ctx, client.Intent{ServerID: "files", ToolName: "delete", ToolArguments: map[string]any{"path": "/srv/report.txt"}},
		client.Subject{RunID: "run-1", IdempotencyKey: "order-1"})
	if err != nil {
		log.Fatal(err)
	}
	if err := decision.Approved(ctx, 10*time.Minute); err != nil {
		log.Fatal(err)
	}
	err = decision.Execute(ctx, func(_ context.Context, intent client.Intent, _ *client.Evidence) error {
		fmt.Println("calling", intent.ToolName, intent.ToolArguments) // exactly the intent that was decided
		return nil
	})
	var stopped *client.Error
	if errors.As(err, &stopped) {
		fmt.Println(stopped.Code, stopped.Message)
	}
}
