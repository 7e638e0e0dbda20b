package commands

import "context"

// chargePass is the fund that a call of this price may draw from the customer's
// monthly pass; false if there is none, or too little is left.
func (a *App) chargePass(_ context.Context, _ string, _ int) (fund, bool, error) {
	return fund{}, false, nil
}
