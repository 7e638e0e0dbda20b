package node

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
)

// Organization returns the id of the organization that a command works on. named may be an id or a
// name; if several organizations have the name, Organization returns an error. If named is empty,
// it returns the user's default for this ledger, or else the only organization.
func (n *Node) Organization(ctx context.Context, named string) (string, error) {
	if strings.HasPrefix(named, "org_") {
		return named, nil
	}
	remembered := ""
	if named == "" {
		places, err := ReadRemembered()
		if err != nil {
			return "", err
		}
		if remembered = places[n.Ledger.Origin()]; remembered != "" {
			return remembered, nil
		}
	}
	list, err := n.App.ListOrganizations(ctx)
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
		return "", errors.New("there is no organization yet: create one with countersign org create")
	case named != "" && len(found) == 0:
		return "", errors.New("--org: no organization has this name; list them with countersign org list")
	case named != "":
		return "", errors.New("--org: several organizations have this name: give the id (see countersign org list)")
	}
	return "", fmt.Errorf("there are %d organizations: name one with --org, or set a default with countersign org use (see countersign org list)", len(list))
}

// rememberedFile returns the file in the user's configuration folder with the default organization
// of each ledger.
func rememberedFile() (string, error) {
	folder, err := os.UserConfigDir()
	return filepath.Join(folder, "countersign", "organizations.json"), err
}

// ReadRemembered returns the ids of the user's default organizations, by the origin of their
// ledger. Without a configuration folder there are none.
func ReadRemembered() (map[string]string, error) {
	places := map[string]string{}
	file, err := rememberedFile()
	if err != nil {
		return places, nil // no configuration folder, so no defaults
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

// WriteRemembered stores the user's default organizations.
func WriteRemembered(places map[string]string) error {
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
