package web

// ShownMachines is how many machines are listed, those that reported last.
const ShownMachines = 50

func showGuard(s *Handler, v *visit) (view, error) {
	list, err := s.app.GuardReports(v.request.Context(), v.principal, ShownMachines)
	return view{template: "guard.html", data: list}, err
}
