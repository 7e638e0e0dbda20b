"""Runs the cases of ../../conformance/cases.json. COUNTERSIGN_PLAY is the address of a running
server of the cases; without it the test starts one from source."""
import concurrent.futures
import copy
import datetime
import json
import os
import subprocess
import unittest
import urllib.request

from countersign import Countersign, CountersignError
from countersign import _http

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ELSEWHERE = "0x0000000000000000000000000000000000000001"


class Redirected:
    """An opener that sends every request to the server of the cases."""

    def __init__(self, play, session):
        self.base, self.opener = "%s/%s/" % (play, session), _http._opener()

    def open(self, request, timeout):
        request.full_url = self.base + request.full_url[len("https://"):]
        return self.opener.open(request, timeout=timeout)


class Clock:
    def __init__(self, now):
        self.time, self.waits = datetime.datetime.strptime(now, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp(), []

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.waits.append(round(seconds * 1000))
        self.time += seconds


class Own(Exception):
    """The function's own error."""


def spoil(value):
    """Changes all values in an argument after the call."""
    for name in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[name], (dict, list)):
            spoil(value[name])
        else:
            value[name] = "rm -rf /"


class Run:
    def __init__(self, file, case, play, session):
        self.case, self.seen = case, {"ran": 0, "error": "", "message": "", "result": False, "upgradeUrl": "", "status": 0, "unchanged": True}
        self.clock = Clock(case.get("now", file["now"]))
        self.original = file["actions"][case.get("action", "command")] if case["do"] in ("gate", "require") else file["intents"][case.get("intent", "tool")]
        self.make = lambda: Countersign(
            case.get("url", "https://countersign.example"), api_key="svck_test", token="svco_test", org_id=case.get("orgId", file["orgId"]),
            keys=None if case.get("keys") == "none" else file["keys"], medium=case.get("medium", "stop"),
            timeout=case.get("timeout", 20_000) / 1000, opener=Redirected(play, session), clock=self.clock)
        self.key = {} if case.get("key") == "none" else {"idempotency_key": case.get("key", "order-1")}

    def fn(self, what):
        self.seen["ran"] += 1
        self.seen["unchanged"] = self.seen["unchanged"] and what == self.original
        spoil(what)  # a change by the function must have no effect either
        if self.case.get("fn") == "throws":
            raise Own("the function's own")
        return "the result"

    def sign(self, required):
        self.seen["ran"] += 1
        kind = self.case.get("signer", "honest")
        if kind == "throws":
            raise Own("the wallet is locked")
        accepted = required["accepts"][0]
        authorization = {"from": ELSEWHERE, "to": accepted["payTo"], "value": accepted["amount"], "validAfter": "0", "validBefore": "1800000300", "nonce": "0x00"}
        if kind == "otherOffer":
            accepted["asset"] = ELSEWHERE
        if kind == "otherRecipient":
            authorization["to"] = ELSEWHERE
        if kind == "otherAmount":
            authorization["value"] = "2500000"
        payload = {"transaction": "AAAA"} if kind == "unreadable" else {"signature": "0x00", "authorization": authorization}
        return {"x402Version": 2, "accepted": accepted, "resource": required["resource"], "payload": payload}

    def decide(self):
        argument = copy.deepcopy(self.original)
        decision = self.client.decide(argument, run_id="run-1", **self.key)
        spoil(argument)
        if self.case["do"] == "approved":
            decision.approved(**({"timeout": self.case["wait"] / 1000} if "wait" in self.case else {}))
        return decision

    def do(self):
        self.client = self.make()
        do, again = self.case["do"], self.case.get("again")
        if do in ("gate", "require"):
            argument = copy.deepcopy(self.original)
            verdict = self.client.gate(argument)
            spoil(argument)
            if do == "gate":
                verdict.run(self.fn)
            else:
                self.fn(verdict.require())
        elif do == "pay":
            self.client.pay("https://api.weather.example/v1/forecast?city=Oslo", self.sign, run_id="run-1", **self.key)
        else:
            decision = self.decide()
            if again == "atOnce":
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    for done in [pool.submit(decision.execute, self.fn) for _ in range(2)]:
                        done.result()
            decision.execute(self.fn)
            if again == "execute":
                decision.execute(self.fn)
            if again == "decide":
                self.decide().execute(self.fn)

    def outcome(self):
        try:
            self.do()
        except CountersignError as error:
            self.seen.update(error=error.code, message=str(error), result=error.result is not None, upgradeUrl=error.upgrade_url or "", status=error.status or 0)
        except Own as error:
            self.seen.update(error="fn", message=str(error))
        except Exception as error:
            self.seen.update(error="another", message=repr(error))
        return {**self.seen, "waits": self.clock.waits}


class Conformance(unittest.TestCase):
    def setUp(self):
        self.play = os.environ.get("COUNTERSIGN_PLAY")
        if not self.play:
            server = subprocess.Popen(["go", "run", "./conformance/play"], cwd=CLIENTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.play = server.stdout.readline().strip()
            self.addCleanup(server.wait)
            self.addCleanup(server.stdin.close)
            self.addCleanup(server.stdout.close)

    def post(self, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        with urllib.request.urlopen(self.play + path, data, timeout=60) as answer:
            return json.load(answer)

    def problems(self, file, case):
        session = self.post("/start", {"case": case["name"]})["session"]
        return self.post("/end/" + session, Run(file, case, self.play, session).outcome())["problems"]

    def test_cases(self):
        file = self.post("/file")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            runs = [(case["name"], pool.submit(self.problems, file, case)) for case in file["cases"]]
            if os.environ.get("COUNTERSIGN_BAIL"):  # one failure is enough to detect a mutant
                for run in concurrent.futures.as_completed(run for _, run in runs):
                    if run.exception() or run.result():
                        os._exit(1)
        for name, run in runs:
            with self.subTest(name):
                self.assertEqual(run.result(), [])


class Unusable(unittest.TestCase):
    def test_nothing_is_a_boolean(self):
        from countersign import Decision, Verdict
        for value in Verdict({}, "low", [], None), Decision.__new__(Decision):
            with self.assertRaises(TypeError):
                bool(value)


if __name__ == "__main__":
    unittest.main()
