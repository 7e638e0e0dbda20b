"""Tests the client with a running service, which .ci/clients/run starts. The policy allows
only the tool action_safety_quick_gate of the server countersign."""
import json
import os
import unittest

from countersign import Countersign, CountersignError


@unittest.skipUnless(os.environ.get("COUNTERSIGN_URL"), "COUNTERSIGN_URL is not set")
class Real(unittest.TestCase):
    def setUp(self):
        with open(os.environ["COUNTERSIGN_KEYS"], encoding="utf-8") as file:
            self.client = Countersign(os.environ["COUNTERSIGN_URL"], api_key=os.environ["COUNTERSIGN_KEY"], token=os.environ["COUNTERSIGN_TOKEN"],
                                      org_id=os.environ["COUNTERSIGN_ORG"], keys=json.load(file))

    def call(self, tool):
        arguments = {"command": "ls", "n": 1.5, "none": {}, "\u00fc": [True, None, 2**60]}
        return self.client.decide({"serverId": "countersign", "toolName": tool, "toolArguments": arguments}).execute(lambda intent: intent["toolArguments"])

    def test_decisions(self):
        self.assertEqual(self.call("action_safety_quick_gate")["n"], 1.5)
        with self.assertRaises(CountersignError) as caught:
            self.call("list_products")
        self.assertEqual(caught.exception.code, "stopped")

    def test_gate(self):
        shell = self.client.gated(lambda command: {"command": command})(lambda command: "ran " + command)
        self.assertEqual(shell("git status"), "ran git status")
        with self.assertRaises(CountersignError) as caught:
            shell("git push --force origin main")
        self.assertEqual(caught.exception.code, "stopped")


if __name__ == "__main__":
    unittest.main()
