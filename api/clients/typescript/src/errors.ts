/** The reason why nothing ran. There are two exceptions: with "receipt_missing" the function ran, and with "payment_unconfirmed" the payment was sent. */
export type Code =
  /** An option or argument is wrong. */
  | "misused"
  /** The verdict or the decision does not permit the action. */
  | "stopped"
  /** A person must approve first, and has not done so in time. */
  | "needs_approval"
  /** A person has rejected the decision. */
  | "rejected"
  /** The decision or its approval is no longer valid. */
  | "expired"
  /** The decision was executed before. */
  | "used"
  /** The service reports that the decision is no longer in effect: a policy has ended it, or it was executed in another process. */
  | "ended"
  /** No usable answer arrived in time. */
  | "unavailable"
  /** The server refused the request (a status of 4xx, or a redirect). */
  | "refused"
  /** The call needs a payment. */
  | "payment_required"
  /** The free calls of the month are used up: see `upgradeUrl`. */
  | "quota_exhausted"
  /** An answer or a signed record failed a check. */
  | "not_verified"
  /** The signer signed something other than the decided offer. No payment was sent. */
  | "offer_changed"
  /** `pay` sent the payment, and no answer confirms it. The seller may have taken it. */
  | "payment_unconfirmed"
  /** The function ran, but its receipt was not recorded: see `result` and `cause`. */
  | "receipt_missing";

/** The error that this package throws. Its message can be shown to a model. */
export class CountersignError extends Error {
  override readonly name = "CountersignError";
  readonly code: Code;
  /** HTTP status of the answer, if an answer is the reason. */
  declare readonly status?: number;
  /** Address where more calls can be bought. */
  declare readonly upgradeUrl?: string;
  /** Result of the function, if it ran and its receipt was not recorded. */
  declare readonly result?: unknown;

  constructor(code: Code, message: string, more: { status?: number; upgradeUrl?: string; result?: unknown; cause?: unknown } = {}) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.code = code;
    const { cause: _, ...rest } = more;
    Object.assign(this, rest);
  }
}

/** Returns the error of an answer or a signed record that failed a check. */
export function notVerified(why: string): CountersignError {
  return new CountersignError("not_verified", `the answer of the service was not accepted: ${why}`);
}
