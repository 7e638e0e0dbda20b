package ground

import (
	"context"
)

// DataKeyOf is the data key of a subject, made if it has none.
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

// ForgetDataKey takes a data key that is erased out of the cache, under whatever
// subject it stands.
func (a *Ground) ForgetDataKey(id string) {
	a.Subjects.Forget(func(known string) bool { return known == id })
}
