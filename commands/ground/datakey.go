package ground

import (
	"context"
)

// DataKeyOf returns the id of a subject's data key, and makes a key if there is none.
func (a *Ground) DataKeyOf(ctx context.Context, orgID, subject string) (string, error) {
	name := orgID + "\x00" + subject
	if id, known := a.Subjects.Get(name); known {
		return id, nil
	}
	id, err := a.Vault.Subject(ctx, orgID, subject, a.NewID("sub_"))
	if err == nil {
		a.Subjects.Put(name, id)
	}
	return id, err
}

// ForgetDataKey removes a data key that was erased from the cache, for all its subjects.
func (a *Ground) ForgetDataKey(id string) {
	a.Subjects.Forget(func(known string) bool { return known == id })
}
