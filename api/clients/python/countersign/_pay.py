"""Payments with x402. A payment is sent only if the signed offer is the decided offer."""
import base64
import re

from ._http import Request, host_of
from ._json import canonical, frozen, frozen_object, parse_or_none, sha256
from .errors import CountersignError


def pay(client, request, sign, approval, options):
    http = client._http
    unpaid = http.once(request)
    if unpaid.status != 402:
        return unpaid
    required, offer = _chosen(unpaid, request.url)
    resource = required.get("resource")
    decision = client.decide({
        "resourceUrl": request.url, "method": request.method, "scheme": offer.get("scheme"), "network": offer.get("network"), "asset": offer.get("asset"),
        "payTo": offer.get("payTo"), "amountUnits": offer.get("amount"), "paymentPayloadResource": resource.get("url") if isinstance(resource, dict) else None,
    }, **options)
    if approval is not None:
        decision.approved(timeout=approval)

    def signed(_):
        payload = frozen(sign({**frozen(required, "offer"), "accepts": [frozen(offer, "offer")]}), "payment")
        _check_signed(payload, offer)
        signature = base64.b64encode(canonical(payload).encode("utf-8")).decode()
        with_payment = Request(request.method, request.url, {**request.headers, "PAYMENT-SIGNATURE": signature}, request.data)
        try:
            paid = http.patiently(with_payment, lambda reply: reply.status >= 500 or reply.status == 429)
        except CountersignError as error:
            raise _unconfirmed(str(error), error.status) from error
        if paid.status == 402:  # check: second-offer
            raise _unconfirmed("the seller answered with 402 again, and no second payment was signed", 402)
        if 300 <= paid.status < 400:  # check: redirect-after-payment
            raise _unconfirmed("the seller redirected the paid request, and the redirect was not followed", paid.status)
        decision.evidence.update(outcome="fulfilled" if paid.status < 400 else "failed", responseStatus=paid.status,
                                 responseBodyHash=sha256(paid.data), settlementId=_transaction(paid))
        return paid

    return decision.execute(signed)


def _unconfirmed(why, status):
    """Returns the error of a failure after the payment was sent."""
    return CountersignError("payment_unconfirmed", "the payment was sent, and the seller may have taken it: %s. Find out whether it was taken before you pay again." % why, status=status)


def _chosen(reply, url):
    """Returns the first offer of a 402 answer whose signed payment can be checked: scheme exact on an EVM network."""
    required = _decoded(reply.headers.get("PAYMENT-REQUIRED"))
    offers = required.get("accepts") if isinstance(required, dict) else None
    for offer in offers if isinstance(offers, list) else []:
        if isinstance(offer, dict) and offer.get("scheme") == "exact" and re.fullmatch(r"eip155:[0-9]+", str(offer.get("network"))) \
                and re.fullmatch(r"0|[1-9][0-9]*", str(offer.get("amount"))):
            return frozen_object(required, "offer"), frozen_object(offer, "offer")
    raise CountersignError("refused", host_of(url) + " requires a payment, but none of its offers can be checked (scheme exact on an EVM network)", status=402)


def _check_signed(payload, offer):
    """Raises unless the signed payment matches the decided offer."""
    inner = payload.get("payload") if isinstance(payload, dict) else None
    authorization = inner.get("authorization") if isinstance(inner, dict) else None
    if not isinstance(authorization, dict):  # check: signed-readable
        raise CountersignError("offer_changed", "the signed payment cannot be read and was not sent")
    if canonical(payload.get("accepted")) != canonical(offer):  # check: signed-offer
        raise CountersignError("offer_changed", "the signed offer differs from the decided offer; the payment was not sent")
    if str(authorization.get("to")).lower() != str(offer.get("payTo")).lower():  # check: signed-recipient
        raise CountersignError("offer_changed", "the signed recipient differs from the decided recipient; the payment was not sent")
    if str(authorization.get("value")) != offer.get("amount"):  # check: signed-amount
        raise CountersignError("offer_changed", "the signed amount differs from the decided amount; the payment was not sent")


def _transaction(reply):
    settled = _decoded(reply.headers.get("PAYMENT-RESPONSE"))
    transaction = settled.get("transaction") if isinstance(settled, dict) else None
    return transaction[:200] if isinstance(transaction, str) and transaction else None


def _decoded(header):
    """Returns the JSON value that a header has in base64; None if it has none."""
    try:
        return parse_or_none(base64.b64decode(header or "", validate=True))
    except ValueError:
        return None
