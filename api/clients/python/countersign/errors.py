"""The error that this package raises."""


class CountersignError(Exception):
    """The reason why nothing ran. There are two exceptions: with receipt_missing the function
    ran, and with payment_unconfirmed the payment was sent.

    The text can be shown to a model. ``code`` is one of:

    misused             an option or argument is wrong
    stopped             the verdict or the decision does not permit the action
    needs_approval      a person must approve first, and has not done so in time
    rejected            a person has rejected the decision
    expired             the decision or its approval is no longer valid
    used                the decision was executed before
    ended               the service reports that the decision is no longer in effect: a policy
                        has ended it, or it was executed in another process
    unavailable         no usable answer arrived in time
    refused             the server refused the request (a status of 4xx, or a redirect)
    payment_required    the call needs a payment
    quota_exhausted     the free calls of the month are used up: see upgrade_url
    not_verified        an answer or a signed record failed a check
    offer_changed       the signer signed something other than the decided offer; no payment
                        was sent
    payment_unconfirmed pay sent the payment, and no answer confirms it
    receipt_missing     the function ran, but its receipt was not recorded: see result, and
                        __cause__ for the exception of the function
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
