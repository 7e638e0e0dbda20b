package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/commands"
)

// ofOrganization is what commands about one organization have.
type ofOrganization struct {
	Org string `help:"Id or name of the organization; default: the one of org use, or the only one there is." env:"COUNTERSIGN_ORG" placeholder:"ORG"`
	data
}

// asOperator runs a step for the organization as the operator.
func (c *ofOrganization) asOperator(ctx context.Context, step func(*commands.App, commands.Principal) error) error {
	n, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	id, err := n.organization(ctx, c.Org)
	if err != nil {
		return err
	}
	p, err := n.app.Operator(ctx, id)
	if err != nil {
		return err
	}
	return step(n.app, p)
}

// organization is the id of the organization a command is about: the one that was
// named, by its id or by a name that only it has, else the one that is remembered for
// this ledger, else the only one there is.
func (n *node) organization(ctx context.Context, named string) (string, error) {
	if strings.HasPrefix(named, "org_") {
		return named, nil
	}
	remembered := ""
	if named == "" {
		places, err := readRemembered()
		if err != nil {
			return "", err
		}
		if remembered = places[n.ledger.Origin()]; remembered != "" {
			return remembered, nil
		}
	}
	list, err := n.app.Organizations(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, org := range list {
		if named == "" || strings.EqualFold(org.Name, named) {
			found = append(found, org.OrgID)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(list) == 0:
		return "", errors.New("there is no organization yet: countersign org create makes one")
	case named != "" && len(found) == 0:
		return "", errors.New("--org: no organization has this name; countersign org list shows all of them")
	case named != "":
		return "", errors.New("--org: several organizations have this name: give the id; countersign org list shows all of them")
	}
	return "", fmt.Errorf("there are %d organizations: name one with --org, or remember one with countersign org use; countersign org list shows all of them", len(list))
}

// orgUseCmd remembers an organization for this user.
type orgUseCmd struct {
	Named  string `arg:"" optional:"" name:"organization" help:"Id or name of the organization."`
	Forget bool   `help:"Remember none any more."`
	data
}

// Run writes it into the user's configuration folder, beside the ledger's name: on
// another ledger it means nothing.
func (c *orgUseCmd) Run(ctx context.Context, o *screen.Output) error {
	if (c.Named == "") != c.Forget {
		return errors.New("name an organization, or give --forget")
	}
	n, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	places, err := readRemembered()
	if err != nil {
		return err
	}
	delete(places, n.ledger.Origin())
	id, text := "", "forgotten\n"
	if !c.Forget {
		if id, err = n.organization(ctx, c.Named); err != nil {
			return err
		}
		org, err := n.app.Organization(ctx, id)
		if err != nil {
			return err
		}
		places[n.ledger.Origin()], text = id, fmt.Sprintf("commands are about %s (%s) from now on\n", org.OrgID, screen.Printable(org.Name))
	}
	if err := writeRemembered(places); err != nil {
		return err
	}
	return o.Result(map[string]string{"orgId": id}, text)
}

// rememberedFile is in the user's configuration folder: an organization for each
// ledger, by the ledger's name.
func rememberedFile() (string, error) {
	folder, err := os.UserConfigDir()
	return filepath.Join(folder, "countersign", "organizations.json"), err
}

func readRemembered() (map[string]string, error) {
	places := map[string]string{}
	file, err := rememberedFile()
	if err != nil {
		return places, nil // no home folder remembers nothing
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return places, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &places)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: remove it, or name the organization with --org: %w", file, files.WithoutPath(err))
	}
	return places, nil
}

func writeRemembered(places map[string]string) error {
	file, err := rememberedFile()
	if err != nil {
		return fmt.Errorf("find the configuration folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(places, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return files.Replace(file, append(text, '\n'))
}
