import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Generated(unittest.TestCase):
    def test_types_are_those_of_the_contract(self):
        sys.path.insert(0, os.path.join(HERE, ".."))
        from generate import generated
        with open(os.path.join(HERE, "..", "..", "contract.json"), encoding="utf-8") as contract, \
                open(os.path.join(HERE, "..", "countersign", "types.py"), encoding="utf-8") as committed:
            self.assertEqual(committed.read(), generated(json.load(contract)), "python3 generate.py ../contract.json > countersign/types.py")


if __name__ == "__main__":
    unittest.main()
