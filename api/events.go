package api

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// getEvent is where the messages of the fan-out refer to for data that were too large
// for a broker.
var getEvent = &operation{
	id: "get_event", method: http.MethodGet, path: projections.EventsPath + "{position}",
	summary: "One event of the organization, as the fan-out publishes it. Its SHA-256 is the datahash of a message that came without data.",
	access:  credential.WithRight(organizations.RightExport), output: reflect.TypeFor[projections.EventData](), errors: []int{401, 403, 404, 503},
}

func (s *Server) getEvent(c *call) (reply, error) {
	position, err := strconv.ParseInt(c.vars["position"], 10, 64)
	if err != nil || position < 1 {
		return reply{}, web.HistoryError(projections.ErrNotFound)
	}
	event, err := s.projections.Event(c.request.Context(), c.Principal.OrgID, position)
	if errors.Is(err, projections.ErrNotFound) {
		return reply{}, web.HistoryError(err)
	}
	if err != nil {
		return reply{}, ground.Unreadable(err)
	}
	body, err := canon.Marshal(event)
	return reply{body: body, header: http.Header{"Cache-Control": {"private, no-store"}}}, err
}
