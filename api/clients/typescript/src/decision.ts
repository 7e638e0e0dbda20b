import type { Countersign, Evidence, Intent } from "./client.js";
import { CountersignError } from "./errors.js";
import { shown } from "./http.js";
import { frozenObject, isObject, type JsonObject } from "./json.js";
import type { Verified } from "./record.js";

const poll = 3_000;

/**
 * A signed decision on one intent. The only way to act on it is `execute`, which calls a
 * function once with the decided intent if the decision is still in effect, and sends a
 * receipt of the outcome.
 */
export class Decision {
  readonly #client: Countersign;
  readonly #intent: Intent;
  readonly #verified: Verified;
  #approval: Verified | undefined;
  /** Members of the receipt in addition to the outcome. The function of `execute` can set them. */
  readonly evidence: Evidence = {};
  /** The signed receipt; undefined before it is recorded. */
  receipt: JsonObject | undefined;

  /** @internal */
  constructor(client: Countersign, intent: Intent, verified: Verified) {
    this.#client = client;
    this.#intent = intent;
    this.#verified = verified;
  }

  /** The signed record. */
  get record(): JsonObject {
    return this.#verified.record;
  }

  get id(): string {
    return String(this.record.decisionId);
  }

  /**
   * Waits until a person has approved, if the decision needs an approval. It throws if the
   * person rejects, or after the time-out in milliseconds (default: 15 minutes).
   */
  async approved({ timeout = 900_000 }: { timeout?: number } = {}): Promise<this> {
    if (this.record.decision === "allow") return this;
    this.#notDenied();
    const { clock } = this.#client.http;
    const end = clock.now() + timeout;
    let said = await this.#client.approval(this.id);
    while (said === undefined) {
      if (clock.now() + poll > end) { // check: approval-timeout
        throw this.#needsApproval(", and no person has answered in time");
      }
      await clock.sleep(poll);
      said = await this.#client.approval(this.id);
    }
    if (said.record.decisionRecordHash !== this.#verified.hash) { // check: approval-decision
      throw new CountersignError("not_verified", "the approval is for another decision");
    }
    if (said.record.verdict !== "approved") { // check: approval-verdict
      throw new CountersignError("rejected", `nothing was run: a person rejected the decision: ${shown(said.record.reason)}`);
    }
    this.#approval = said;
    return this;
  }

  /**
   * Calls a function with the decided intent and sends the receipt, even if the function
   * throws. It throws without calling the function unless the decision is an allow or was
   * approved, is still valid, was not executed before, and was not ended by a policy. If
   * the receipt cannot be recorded, the error has the function's result as `result`, or its
   * error as `cause`.
   */
  async execute<T>(fn: (intent: Intent) => T | Promise<T>): Promise<T> {
    this.#permitted();
    const { used } = this.#client;
    if (used.has(this.id)) { // check: used
      throw new CountersignError("used", "nothing was run: the decision was executed before");
    }
    used.add(this.id);
    try {
      await this.#holds();
      this.#permitted(); // check: still-permitted
    } catch (error) {
      used.delete(this.id);
      throw error;
    }
    let result: T | undefined;
    let failure: { cause: unknown } | undefined;
    try {
      result = await fn(this.#intent);
    } catch (cause) {
      failure = { cause };
    }
    try {
      await this.#report(failure ? "failed" : "fulfilled");
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new CountersignError("receipt_missing", `the function ran, but its receipt was not recorded: ${why}`, failure ?? { result });
    }
    if (failure) throw failure.cause;
    return result as T;
  }

  #notDenied(): void {
    if (this.record.decision !== "deny") return;
    throw new CountersignError("stopped", `Countersign stopped this and nothing was run: the organization's policy denies it: ${this.#because("deny")}. Do not try to do the same in another way; ask a person if it is needed.`);
  }

  /** Returns the error of a decision that no person has approved. The text names the decision, so that a person can find it, and the rules that require the approval. */
  #needsApproval(why: string): CountersignError {
    return new CountersignError("needs_approval", `nothing was run: a person has to approve decision ${this.id}${why}: ${this.#because("needs_review")}`);
  }

  /** Lists the findings with this effect on the decision. */
  #because(effect: string): string {
    const findings = Array.isArray(this.record.findings) ? this.record.findings : [];
    return findings.filter(isObject).filter((f) => f.effect === effect).map((f) => `${shown(f.ruleId)} (${shown(f.message)})`).join(", ");
  }

  /** Throws unless the decision, or its approval, permits the execution now. */
  #permitted(): void {
    this.#notDenied();
    const permission = this.record.decision === "allow" ? this.record : this.#approval?.record;
    if (permission === undefined) { // check: permission
      throw this.#needsApproval(" first");
    }
    const end = typeof permission.validUntil === "string" ? Date.parse(permission.validUntil) : NaN;
    if (!(this.#client.http.clock.now() <= end)) { // check: expiry
      throw new CountersignError("expired", "nothing was run: the decision is no longer valid");
    }
  }

  /** Throws unless the service confirms that the decision is still in effect. */
  async #holds(): Promise<void> {
    const standing = await this.#client.standing(this.id);
    if (standing.decisionId !== this.id || standing.decisionRecordHash !== this.#verified.hash) { // check: standing-decision
      throw new CountersignError("not_verified", "the service answered the question about this decision with another decision");
    }
    if (standing.holds !== true) { // check: standing
      throw new CountersignError("ended", `nothing was run: the decision is no longer in effect: ${shown(standing.reason)}`);
    }
  }

  async #report(outcome: "fulfilled" | "failed"): Promise<void> {
    const { decisionId, bindingHash, protocol } = this.record;
    const receipt = frozenObject({
      outcome, ...this.evidence, decisionId, bindingHash, protocol, decisionRecordHash: this.#verified.hash,
      observedAt: new Date(this.#client.http.clock.now()).toISOString(),
    }, "receipt");
    const { record } = await this.#client.report(receipt);
    if (record.decisionRecordHash !== this.#verified.hash) { // check: receipt-decision
      throw new CountersignError("not_verified", "the receipt is for another decision");
    }
    if (record.outcome !== receipt.outcome) { // check: receipt-outcome
      throw new CountersignError("not_verified", "the receipt has another outcome");
    }
    this.receipt = record;
  }
}
