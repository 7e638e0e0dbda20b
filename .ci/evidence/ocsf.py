#!/usr/bin/env python3
"""Compile the class API Activity of the Open Cybersecurity Schema Framework to JSON Schema.

Usage: ocsf.py FOLDER > schema.json, where FOLDER is a checkout of a release of
github.com/ocsf/ocsf-schema. ledger/forms/testdata has the result for the release that
ocsf.jsonl is written in. The rules are those of the schema's metaschema: an attribute has the
type that the dictionary gives it, enums of a class extend those of the dictionary, an attribute
of a profile is required only where the profile is named, and no other attribute is allowed.
"""
import json
import os
import sys

top = sys.argv[1]


def load(path):
    with open(os.path.join(top, path), encoding="utf-8") as f:
        return json.load(f)


dictionary = load("dictionary.json")
types = dictionary["types"]["attributes"]
version = load("version.json")["version"]
named = {}
for kind in ("events", "objects"):
    for folder, _, files in os.walk(os.path.join(top, kind)):
        for file in files:
            if file.endswith(".json"):
                path = os.path.relpath(os.path.join(folder, file), top)
                text = load(path)
                named[kind, text.get("name", text.get("extends"))] = text


def included(attributes):
    """The attributes with those of the included profiles, and the profile of each of these."""
    out = {}
    includes = attributes.get("$include", [])
    for path in [includes] if isinstance(includes, str) else includes:
        profile = load(path)
        for name, a in profile["attributes"].items():
            out[name] = dict(profile.get("annotations", {}), **a, profile=profile["name"])
    for name, a in attributes.items():
        if name != "$include":
            out[name] = merge(out.get(name, {}), a)
    return out


def merge(old, new):
    both = dict(old, **new)
    if "enum" in old and "enum" in new:
        both["enum"] = dict(old["enum"], **new["enum"])
    return both


def resolved(kind, name):
    """A class or object with everything that it extends."""
    text = named[kind, name]
    attributes, constraints = {}, {}
    if text.get("extends") and text["extends"] != name:
        attributes, constraints, _ = resolved(kind, text["extends"])
    for attribute, a in included(text.get("attributes", {})).items():
        attributes[attribute] = merge(attributes.get(attribute, {}), a)
    return attributes, dict(constraints, **text.get("constraints", {})), text


wanted, schemas = [], {}


def scalar(name):
    t = types[name]
    base = t.get("type", name)
    out = {}
    if base in ("integer_t", "long_t"):
        out["type"] = "integer"
    elif base == "float_t":
        out["type"] = "number"
    elif base == "boolean_t":
        out["type"] = "boolean"
    elif base == "string_t":
        out["type"] = "string"
    if "regex" in t:
        out["pattern"] = t["regex"]
    if "max_len" in t:
        out["maxLength"] = t["max_len"]
    if "range" in t:
        out["minimum"], out["maximum"] = t["range"]
    return out


def schema(attributes, constraints, fixed):
    properties, required = {}, []
    for name, own in sorted(attributes.items()):
        a = merge(dictionary["attributes"].get(name, {}), own)
        if "type" not in a:
            raise SystemExit(f"{name} is not in the dictionary")
        if a["type"] == "object_t" or ("objects", a["type"]) in named and a["type"] not in types:
            target = a.get("object_type", a["type"])
            wanted.append(target)
            item = {"$ref": f"#/$defs/{target}"}
        else:
            item = scalar(a["type"])
            if "enum" in a:
                values = a["enum"]
                item["enum"] = sorted(int(v) for v in values) if item.get("type") == "integer" else sorted(values)
        if name in fixed:
            item["enum"] = fixed[name]
        properties[name] = {"type": "array", "items": item} if a.get("is_array") else item
        if a.get("requirement") == "required" and not a.get("profile"):
            required.append(name)
    out = {"type": "object", "properties": properties, "additionalProperties": False}
    if not properties:
        out = {"type": "object"}
    if required:
        out["required"] = required
    if "at_least_one" in constraints:
        out["anyOf"] = [{"required": [name]} for name in constraints["at_least_one"]]
    if "just_one" in constraints:
        out["oneOf"] = [{"required": [name]} for name in constraints["just_one"]]
    return out


attributes, constraints, event = resolved("events", "api_activity")
category = load("categories.json")["attributes"][event.get("category", "application")]["uid"]
uid = category * 1000 + event["uid"]
activities = sorted(int(v) for v in merge(dictionary["attributes"]["activity_id"], attributes["activity_id"])["enum"])
top_schema = schema(attributes, constraints, {"category_uid": [category], "class_uid": [uid], "type_uid": [uid * 100 + a for a in activities]})
while wanted:
    name = wanted.pop()
    if name not in schemas:
        schemas[name] = {}
        attributes, constraints, _ = resolved("objects", name)
        schemas[name] = schema(attributes, constraints, {})
top_schema.update({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"OCSF {version} API Activity", "$defs": dict(sorted(schemas.items()))})
json.dump(top_schema, sys.stdout, sort_keys=True, separators=(",", ":"))
print()
