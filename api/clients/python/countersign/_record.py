"""Verifies signed records with keys from the program, never with a key from an answer."""
import base64
import binascii

from . import _ed25519
from ._json import canonical, sha256
from .errors import misused, not_verified


class Verified:
    """A record whose signature was verified, and its hash."""

    def __init__(self, record, record_hash):
        self.record, self.hash = record, record_hash


class Keys:
    """The keys of a JSON Web Key Set, saved from /.well-known/jwks.json of the service."""

    def __init__(self, key_set):
        self._keys = {}  # key id to public key and its entries, one for each partition of the ledger
        for entry in key_set.get("keys", []) if isinstance(key_set, dict) else []:
            try:
                public = base64.urlsafe_b64decode(entry["x"] + "==")
            except (KeyError, TypeError, ValueError):
                continue
            if entry.get("crv") == "Ed25519" and len(public) == 32 and entry.get("kid") == sha256(public)[:16]:
                self._keys.setdefault(entry["kid"], (public, []))[1].append(entry)
        if not self._keys:
            raise misused("keys must be a JSON Web Key Set, as saved from /.well-known/jwks.json of the service")

    def verify(self, envelope, kind):
        """Returns the record of an envelope. It raises if the record has another type or no
        valid signature of a trusted key."""
        record, integrity = envelope.get("record"), envelope.get("integrity")
        if not isinstance(record, dict) or not isinstance(integrity, dict):  # check: envelope
            raise not_verified("it is not a signed record")
        if [integrity.get(name) for name in ("canonicalization", "hashAlgorithm", "signatureAlgorithm")] != ["svc-stable-json-v1", "sha256", "Ed25519"]:  # check: algorithms
            raise not_verified("it names another signature or hash algorithm")
        body = canonical(record).encode("utf-8")
        if sha256(body) != integrity.get("recordHash"):  # check: record-hash
            raise not_verified("its hash differs from its recordHash")
        public, entries = self._keys.get(str(integrity.get("keyId")), (None, []))
        if public is None or any(entry.get("svc_purpose") != "record" for entry in entries):  # check: key-purpose
            raise not_verified("it was not signed by a trusted key for records")
        if not _valid_at(entries, envelope.get("ledger")):  # check: key-position
            raise not_verified("its key was not valid at its position in the ledger")
        # The signature must cover the type that the caller expects. The type in the envelope
        # is ignored.
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(body), body)
        if not _ed25519.verify(public, signed, _decoded(integrity.get("signature"))):  # check: signature
            raise not_verified("its signature does not verify for its key and a record of this type")
        return Verified(record, sha256(body))


def _decoded(text):
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return b""


def _valid_at(entries, place):
    """Reports whether a key was valid at a position in the ledger. Keys are activated and retired at positions."""
    if not isinstance(place, dict) or not _is_int(place.get("position")):
        return False
    position = place["position"]
    for entry in entries:
        if (entry.get("svc_partition") or 0) == (place.get("partition") or 0):
            first, ends = entry.get("svc_from_position"), (entry.get("svc_to_position"), entry.get("svc_void_from_position"))
            return _is_int(first) and position >= first and all(end is None or _is_int(end) and position < end for end in ends)
    return False


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)
