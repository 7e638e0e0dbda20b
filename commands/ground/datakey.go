package ground

import (
	"context"
)

// DataKeyOf returns the id of a subject's data key. If the subject has none, it makes one, and
// made is true.
func (a *Ground) DataKeyOf(ctx context.Context, orgID, subject string) (id string, made bool, err error) {
	name := orgID + "\x00" + subject
	if id, known := a.Subjects.Get(name); known {
		return id, false, nil
	}
	fresh := a.NewID("sub_")
	if id, err = a.Vault.Subject(ctx, orgID, subject, fresh); err == nil {
		a.Subjects.Put(name, id)
	}
	return id, id == fresh, err
}

// ForgetDataKey removes an erased data key from the cache.
func (a *Ground) ForgetDataKey(id string) {
	a.Subjects.Forget(func(known string) bool { return known == id })
}
