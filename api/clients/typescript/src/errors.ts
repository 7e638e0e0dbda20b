/** Why nothing ran, with two exceptions: with "receipt_missing" the function ran, and with "payment_unconfirmed" the payment was sent. */
export type Code =
  /** The client, or a call of it, was made wrongly. */
  | "misused"
  /** The verdict or the decision says no. */
  | "stopped"
  /** A person has to approve first, and has not done so in time. */
  | "needs_approval"
  /** A person has rejected it. */
  | "rejected"
  /** The decision or its approval is no longer valid. */
  | "expired"
  /** The decision was executed before. */
  | "used"
  /** The service says that the decision no longer holds: a policy has ended it, or it was executed in another process. */
  | "ended"
  /** No usable answer came in time. */
  | "unavailable"
  /** The other side refuses the request (a status of 4xx, a redirect). */
  | "refused"
  /** The call has to be paid. */
  | "payment_required"
  /** The free calls of the month are used up: see `upgradeUrl`. */
  | "quota_exhausted"
  /** An answer or a signed record is not what it must be. */
  | "not_verified"
  /** Something else was signed than what was decided about. No payment was sent. */
  | "offer_changed"
  /** `pay`: the payment was sent, and no answer says that the seller took it. The seller may have taken it. */
  | "payment_unconfirmed"
  /** It ran, and no receipt of it was recorded: see `result` and `cause`. */
  | "receipt_missing";

/** The one error of this package. Its message can be given to a model. */
export class CountersignError extends Error {
  override readonly name = "CountersignError";
  readonly code: Code;
  /** HTTP status of the answer, if one is the reason. */
  declare readonly status?: number;
  /** Where to get more calls. */
  declare readonly upgradeUrl?: string;
  /** What the function returned, if it ran and its receipt was not recorded. */
  declare readonly result?: unknown;

  constructor(code: Code, message: string, more: { status?: number; upgradeUrl?: string; result?: unknown; cause?: unknown } = {}) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.code = code;
    const { cause: _, ...rest } = more;
    Object.assign(this, rest);
  }
}

/** The error of an answer, or of a signed record, that is not what it must be. */
export function notVerified(why: string): CountersignError {
  return new CountersignError("not_verified", `the answer of the service was not accepted: ${why}`);
}
