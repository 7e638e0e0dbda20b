import type { Action } from "./client.js";
import type { CountersignError } from "./errors.js";

/**
 * The gate's verdict on one action. `run` and `require` throw unless the action may run. A
 * program does not compare values itself, so it cannot forget a check.
 */
export class Verdict {
  readonly #action: Action;
  readonly #stopped: CountersignError | undefined;
  readonly risk: string;
  readonly ruleIds: readonly string[];

  /** @internal */
  constructor(action: Action, risk: string, ruleIds: readonly string[], stopped: CountersignError | undefined) {
    this.#action = action;
    this.#stopped = stopped;
    this.risk = risk;
    this.ruleIds = ruleIds;
  }

  /** Returns the judged action, frozen. It throws if the action may not run. */
  require(): Action {
    if (this.#stopped !== undefined) throw this.#stopped;
    return this.#action;
  }

  /** Calls a function with the judged action. It throws without calling the function if the action may not run. */
  async run<T>(fn: (action: Action) => T | Promise<T>): Promise<T> {
    return fn(this.require());
  }
}
