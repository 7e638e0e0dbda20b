package evidence

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// getEvent answers with an event. A message whose data were too large for the broker contains the
// address of this operation instead.
var getEvent = &op.Operation{
	ID: "get_event", Method: http.MethodGet, Path: projections.EventsPath + "{position}",
	Summary: "One event of the organization, with the same bytes as in its webhook message. If a message came without data, its datahash is the SHA-256 of this answer.",
	Access:  credential.WithRight(organizations.RightExport), Output: reflect.TypeFor[forms.EventData](), Errors: []int{401, 403, 404, 503},
}

func (s *Exports) getEvent(c *op.Call) (op.Reply, error) {
	position, err := strconv.ParseInt(c.Vars["position"], 10, 64)
	if err != nil || position < 1 {
		return op.Reply{}, query.Error(projections.ErrNotFound)
	}
	event, err := s.Projections.Event(c.Request.Context(), c.Principal.OrgID, position)
	if errors.Is(err, projections.ErrNotFound) {
		return op.Reply{}, query.Error(err)
	}
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	body, err := canon.Marshal(event)
	return op.Reply{Body: body, Header: op.Private()}, err
}
