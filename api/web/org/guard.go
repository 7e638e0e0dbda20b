package org

import (
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
)

func (r *Room) showGuard(v *web.Visit) (web.View, error) {
	list, err := r.Webhooks.GuardReports(v.Request.Context(), v.Principal, query.MostMachines)
	return web.View{Template: "guard.html", Data: list}, err
}
