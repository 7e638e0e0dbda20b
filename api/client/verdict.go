package client

// Verdict is what the gate says of one action. The only way to the action is through it:
// Run and Require refuse unless it may run. The zero Verdict refuses.
type Verdict struct {
	Risk    string
	RuleIDs []string

	action  Action
	judged  bool
	stopped *Error
}

// Require returns the action that was judged, or the reason why it may not run.
func (v Verdict) Require() (Action, error) {
	if !v.judged { // check: judged
		return Action{}, misused("nothing was run: this verdict is not of Gate")
	}
	if v.stopped != nil {
		return Action{}, v.stopped
	}
	return v.action, nil
}

// Run calls a function with the action that was judged. It refuses, without calling it, if
// the action may not run.
func (v Verdict) Run(fn func(Action) error) error {
	a, err := v.Require()
	if err != nil {
		return err
	}
	return fn(a)
}
