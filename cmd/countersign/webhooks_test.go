package main

import (
	"strings"
	"testing"
)

func TestWebhooksOfAnOrganization(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	org := o.value("orgId", "org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com")
	id := o.value("webhookId", "webhooks", "create", "--org", org, "--url", "https://siem.example.com/in?k=S3CRET", "--topics", "decisions,reviews")
	if text := o.run(0, "webhooks", "list", "--org", org); !strings.HasPrefix(text, id+"\thttps://siem.example.com\tdecisions reviews") || strings.Contains(text, "S3CRET") {
		t.Errorf("list: %s", text)
	}
	if secret := o.value("secret", "webhooks", "rotate", "--org", org, id); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("rotate: %s", secret)
	}
	if text := o.run(0, "webhooks", "deliveries", "--org", org, id, "--state", "dead"); text != "" {
		t.Errorf("deliveries: %s", text)
	}
	if text := o.run(0, "webhooks", "resend", "--org", org, id); text != "0 will be sent again\n" {
		t.Errorf("resend: %s", text)
	}
	o.run(2, "webhooks", "resend", "--org", org, id, "--message", "0:1:decisions")
	o.run(2, "webhooks", "create", "--org", org, "--url", "https://127.0.0.1:8443/in")
	o.run(0, "webhooks", "create", "--org", org, "--url", "http://127.0.0.1:8080/in", "--webhook-networks", "127.0.0.0/8")
	o.run(0, "webhooks", "remove", "--org", org, id)
	o.run(2, "webhooks", "rotate", "--org", org, id)
}
