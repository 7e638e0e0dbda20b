from ._json import frozen


class Verdict:
    """The gate's verdict on one action. run and require raise unless the action may run."""

    def __init__(self, action, risk, rule_ids, stopped):
        self._action, self._stopped = action, stopped
        self.risk, self.rule_ids = risk, rule_ids

    def require(self):
        """Returns a copy of the judged action. It raises if the action may not run."""
        if self._stopped is not None:
            raise self._stopped
        return frozen(self._action, "action")

    def run(self, fn):
        """Calls a function with the judged action and returns its result. It raises without
        calling the function if the action may not run."""
        return fn(self.require())

    def __bool__(self):
        raise TypeError("a verdict is neither true nor false: use run or require")
