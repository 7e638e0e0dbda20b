package web

import (
	"github.com/countersign/countersign/commands/organizations"
)

// ShownMachines is how many machines are listed, those that reported last.
const ShownMachines = 50

func showGuard(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.reader(v, organizations.RightExport)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	list, err := s.app.GuardReports(v.request.Context(), p, ShownMachines)
	return view{template: "guard.html", data: list}, err
}
