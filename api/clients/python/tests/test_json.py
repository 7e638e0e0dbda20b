import unittest

from countersign import Countersign, CountersignError
from countersign._json import canonical, parse


class Json(unittest.TestCase):
    def test_numbers_are_written_as_ecmascript_writes_them(self):
        for value, text in [(0.0, "0"), (-0.0, "0"), (1.0, "1"), (-1.5, "-1.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (123456789012345680000.0, "123456789012345680000"),
                            (1e-6, "0.000001"), (1e-7, "1e-7"), (1.5e-9, "1.5e-9"), (5e-324, "5e-324"), (2**63, "9223372036854775808"), (0.1 + 0.2, "0.30000000000000004"), (True, "true")]:
            self.assertEqual(canonical(value), text)

    def test_members_are_sorted_by_code_units(self):
        self.assertEqual(canonical({"\ufb33": 1, "\U0001f600": 2, "a": "\u2028\n"}), '{"a":"\u2028\\n","\U0001f600":2,"\ufb33":1}')

    def test_what_is_no_strict_json_is_refused(self):
        for text in (b'{"a":1,"a":2}', b"NaN", b"[1", b"\xff", b"{} {}"):
            with self.assertRaises(ValueError):
                parse(text)

    def test_what_has_no_json_form_is_refused(self):
        client = Countersign("https://countersign.example")
        for action in ({"command": float("nan")}, {"command": {1: 2}}, {"command": {1}}, {"command": "\ud800"}, ["ls"], "ls", None):
            with self.assertRaises(CountersignError) as caught:
                client.gate(action)
            self.assertEqual(caught.exception.code, "misused")


if __name__ == "__main__":
    unittest.main()
