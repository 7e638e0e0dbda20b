#!/usr/bin/env python3
"""Generates countersign/types.py from the contract:

    python3 generate.py ../contract.json > countersign/types.py

A test fails if the committed file differs from the result.
"""
import json
import sys

HEAD = '''"""Types of the contract, made by generate.py: do not change them by hand."""
from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Union

if sys.version_info >= (3, 11):
    from typing import Literal, NotRequired, TypedDict
else:
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from typing_extensions import Literal, NotRequired, TypedDict
    else:
        TypedDict = dict
'''


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "enum" in schema:
        return "Literal[%s]" % ", ".join(repr(value) for value in schema["enum"])
    if "anyOf" in schema:
        kinds = [type_of(s) for s in schema["anyOf"] if s.get("type") != "null"]
        kind = kinds[0] if len(kinds) == 1 else "Union[%s]" % ", ".join(kinds)
        return "Optional[%s]" % kind if len(kinds) < len(schema["anyOf"]) else kind
    kind = schema.get("type")
    if kind == "array":
        return "List[%s]" % type_of(schema.get("items", {}))
    if kind == "object":
        return "Dict[str, Any]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")


def generated(contract):
    lines = [HEAD]
    for name, schema in contract["components"]["schemas"].items():
        if "properties" not in schema:
            continue
        lines.append("\nclass %s(TypedDict):" % name)
        for member, value in sorted(schema["properties"].items()):
            kind = type_of(value)
            lines.append("    %s: %s" % (member, kind if member in schema.get("required", []) else "NotRequired[%s]" % kind))
        lines.append("")
    lines.append("\nAction = ActionSafetyQuickGateRequest\nIntent = IntentInput\n")
    return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(generated(json.load(file)))
