"""The one error of this package."""


class CountersignError(Exception):
    """Says why nothing ran, with two exceptions: with receipt_missing the function ran, and
    with payment_unconfirmed the payment was sent.

    The text can be given to a model. ``code`` is one of:

    misused             the client, or a call of it, was made wrongly
    stopped             the verdict or the decision says no
    needs_approval      a person has to approve first, and has not done so in time
    rejected            a person has rejected it
    expired             the decision or its approval is no longer valid
    used                the decision was executed before
    ended               the service says that the decision no longer holds: a policy has ended
                        it, or it was executed in another process
    unavailable         no usable answer came in time
    refused             the other side refuses the request (a status of 4xx, a redirect)
    payment_required    the call has to be paid
    quota_exhausted     the free calls of the month are used up: see upgrade_url
    not_verified        an answer or a signed record is not what it must be
    offer_changed       something else was signed than what was decided about; no payment
                        was sent
    payment_unconfirmed pay: the payment was sent, and no answer says that the seller took it
    receipt_missing     it ran, and no receipt of it was recorded: see result, and __cause__
                        for what the function raised
    """

    def __init__(self, code, message, status=None, upgrade_url=None, result=None):
        super().__init__(message)
        self.code = code
        self.status = status
        self.upgrade_url = upgrade_url
        self.result = result


def misused(message):
    return CountersignError("misused", message)


def not_verified(why):
    return CountersignError("not_verified", "the answer of the service was not accepted: " + why)
