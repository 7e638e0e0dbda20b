"""A client of Countersign that cannot fail open.

    from countersign import Countersign

    client = Countersign("https://countersign.example", api_key="svck_...")
    client.gate({"command": "git status"}).run(lambda action: subprocess.run(action["command"], shell=True))

gate requests a verdict on a command, decide a decision on a payment or a tool call, and pay
pays with x402. None of them returns a boolean: the verdict or the decision calls the function
with the judged action. An error of that function is raised unchanged; every other error is
a CountersignError.
"""
from ._record import Keys
from .client import Countersign
from .decision import Decision
from .errors import CountersignError
from .verdict import Verdict

__all__ = ["Countersign", "CountersignError", "Decision", "Keys", "Verdict"]
__version__ = "1.0.0"
