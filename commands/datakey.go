package commands

import "context"

// dataKeyOf is the data key of a subject, made if it has none.
func (a *Ground) dataKeyOf(ctx context.Context, orgID, subject string) (string, error) {
	name := orgID + "\x00" + subject
	if id, known := a.subjects.get(name); known {
		return id, nil
	}
	id, err := a.Vault.Subject(ctx, orgID, subject, a.NewID("sub_"))
	if err == nil {
		a.subjects.put(name, id)
	}
	return id, err
}

// forgetDataKey takes a data key that is erased out of the cache, under whatever
// subject it stands.
func (a *Ground) forgetDataKey(id string) {
	a.subjects.forget(func(known string) bool { return known == id })
}
