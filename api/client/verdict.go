package client

// Verdict is the gate's verdict on one action. Run and Require are the only way to get the action,
// and they refuse if it must not run. The zero Verdict refuses.
type Verdict struct {
	Risk    string
	RuleIDs []string

	action  Action
	judged  bool
	stopped *Error
}

// Require returns the action that was evaluated, or an error that explains why it must not run.
func (v Verdict) Require() (Action, error) {
	if !v.judged { // check: judged
		return Action{}, misused("nothing was run: the verdict was not returned by Gate")
	}
	if v.stopped != nil {
		return Action{}, v.stopped
	}
	return v.action, nil
}

// Run calls a function with the action that was evaluated. If the action must not run, it returns
// the error without calling the function.
func (v Verdict) Run(fn func(Action) error) error {
	a, err := v.Require()
	if err != nil {
		return err
	}
	return fn(a)
}
