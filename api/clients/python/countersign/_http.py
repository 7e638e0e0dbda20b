"""HTTP requests with a limited number of retries."""
import email.utils
import http.client
import re
import time
import unicodedata
import urllib.error
import urllib.parse
import urllib.request

from .errors import CountersignError, not_verified

ATTEMPTS = 4
PATIENCE = 30.0  # limit of all waits for one request together, in seconds
FIRST_WAIT = 0.5
MAX_ANSWER = 8 << 20  # size of the largest accepted answer, in bytes


class Reply:
    """An answer with its complete body."""

    def __init__(self, status, headers, data):
        self.status, self.headers, self.data = status, headers, data


class Request:
    """A request."""

    def __init__(self, method, url, headers=None, data=None):
        self.method, self.url, self.headers, self.data = method, url, headers or {}, data


def _opener():
    """Returns an opener that does not follow redirects and does not raise for any status."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.UnknownHandler):
        opener.add_handler(handler())
    return opener


class Clock:
    """The platform's clock, in seconds since 1970."""

    now = staticmethod(time.time)
    sleep = staticmethod(time.sleep)


class Http:
    def __init__(self, timeout, opener=None, clock=None):
        self.timeout, self.opener, self.clock = timeout, opener or _opener(), clock or Clock()

    def once(self, request):
        """Sends a request once. It raises if there is no complete answer. It does not follow redirects: a redirect is an answer."""
        outgoing = urllib.request.Request(request.url, request.data, request.headers, method=request.method)
        end = time.monotonic() + self.timeout
        data = bytearray()
        try:
            with self.opener.open(outgoing, timeout=self.timeout) as answer:
                while len(data) <= MAX_ANSWER:
                    part = answer.read1(1 << 16)
                    data += part
                    if not part:
                        break
                    if time.monotonic() > end:  # check: deadline
                        raise TimeoutError
                if len(data) > MAX_ANSWER:  # check: answer-size
                    raise CountersignError("unavailable", "the answer of " + host_of(request.url) + " is too large", status=answer.status)
                if answer.length:  # check: whole-answer
                    raise http.client.IncompleteRead(bytes(data))
                return Reply(answer.status, answer.headers, bytes(data))
        except (OSError, http.client.HTTPException) as error:
            raise CountersignError("unavailable", host_of(request.url) + " sent no complete answer") from error

    def patiently(self, request, later):
        """Sends a request until later returns false for the answer. It tries at most four
        times and waits at most 30 seconds in total. All attempts send the same idempotency
        key or payment."""
        waited = 0.0
        for attempt in range(1, ATTEMPTS + 1):
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            try:
                reply = self.once(request)
                if not later(reply):
                    return reply
                failure = CountersignError("unavailable", "%s answered %d with an unusable body" % (host_of(request.url), reply.status), status=reply.status)
                asked = self._asked(reply.headers.get("Retry-After"))
                wait = wait if asked is None else asked
                if waited + wait > PATIENCE:  # check: patience
                    raise CountersignError("unavailable", "%s asked for a wait of %d seconds, which is too long" % (host_of(request.url), wait), status=reply.status)
            except CountersignError as error:
                if error.status is not None:
                    raise
                failure = error
            if attempt == ATTEMPTS:
                raise failure
            waited += wait
            self.clock.sleep(wait)

    def _asked(self, header):
        """Returns the wait of a Retry-After header in seconds; None if the header is not valid."""
        if re.fullmatch(r"[0-9]{1,9}", header or "", re.ASCII):
            return float(header)
        try:
            return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - self.clock.now())
        except (TypeError, ValueError):
            return None


def shown(text):
    """Makes a text of a server safe to show: control characters become spaces, and only the
    first 500 characters are kept."""
    if not isinstance(text, str):
        return ""
    return "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)[:500]


def host_of(url):
    return urllib.parse.urlsplit(url).netloc


def as_object(body, what):
    if not isinstance(body, dict):  # check: object
        raise not_verified(what + " is not an object")
    return body
