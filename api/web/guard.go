package web

import "github.com/countersign/countersign/commands"

// shownMachines is how many machines the page of guards shows.
const shownMachines = 50

func showGuard(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.reader(v, commands.RightExport)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	list, err := s.app.GuardReports(v.request.Context(), p, shownMachines)
	return view{template: "guard.html", data: list}, err
}
