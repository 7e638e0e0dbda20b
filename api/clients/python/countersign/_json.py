"""Canonical JSON (RFC 8785), except that an integer beyond 2^53-1 keeps its digits."""
import hashlib
import json
import math

from .errors import misused


def frozen(value, path):
    """Returns a deep copy. Actions and intents are copied, so that later changes by the
    program cannot change what is executed. A value that cannot be encoded as JSON raises."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise misused(path + " must not contain an unpaired surrogate")
        return value
    if isinstance(value, (list, tuple)):
        return [frozen(item, "%s[%d]" % (path, i)) for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {frozen(name, path): frozen(member, path + "." + name) for name, member in value.items()}
    raise misused(path + " must be a JSON value")


def frozen_object(value, path):
    """Returns a copy of a dict without its None members, which mean the same as absent ones in a request."""
    copy = frozen(value, path)
    if not isinstance(copy, dict):
        raise misused(path + " must be a dict")
    return {name: member for name, member in copy.items() if member is not None or name == "toolArguments"}


def canonical(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value):
    """Returns a number as ECMAScript prints it: with the fewest digits, and with an exponent
    from 1e21 on and below 1e-6."""
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + "e%+d" % (point - 1)
    return ("-" if value < 0 else "") + text


def sha256(data):
    """Returns the SHA-256 of bytes or of a string in hexadecimal digits."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def _unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def _refuse(text):
    raise ValueError(text)


def parse(data):
    """Decodes strict JSON. It raises ValueError for other bytes."""
    return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)


def parse_or_none(data):
    """Decodes strict JSON. It returns None for other bytes."""
    try:
        return parse(data)
    except (ValueError, RecursionError):
        return None
