"""A client of Countersign that cannot fail open.

    from countersign import Countersign

    client = Countersign("https://countersign.example", api_key="svck_...")
    client.gate({"command": "git status"}).run(lambda action: subprocess.run(action["command"], shell=True))

gate asks about a command, decide about a payment or a tool call, pay pays by x402. None of
them returns a boolean: the function runs only through the verdict or the decision, with
what was asked about. An error of that function is passed on; every other error is a
CountersignError.
"""
from ._record import Keys
from .client import Countersign
from .decision import Decision
from .errors import CountersignError
from .verdict import Verdict

__all__ = ["Countersign", "CountersignError", "Decision", "Keys", "Verdict"]
__version__ = "1.0.0"
