from ._json import frozen


class Verdict:
    """What the gate says of one action. The only way to the action is through the verdict:
    run and require raise unless it may run."""

    def __init__(self, action, risk, rule_ids, stopped):
        self._action, self._stopped = action, stopped
        self.risk, self.rule_ids = risk, rule_ids

    def require(self):
        """The action that was judged. Raises if it may not run."""
        if self._stopped is not None:
            raise self._stopped
        return frozen(self._action, "action")

    def run(self, fn):
        """Calls a function with the action that was judged, and returns what it returns.
        Raises, without calling it, if it may not run."""
        return fn(self.require())

    def __bool__(self):
        raise TypeError("a verdict is neither true nor false: use run or require")
