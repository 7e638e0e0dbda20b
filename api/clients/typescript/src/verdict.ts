import type { Action } from "./client.js";
import type { CountersignError } from "./errors.js";

/**
 * What the gate says of one action. The only way to the action is through the verdict:
 * `run` and `require` throw unless it may run. There is nothing to compare.
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

  /** The action that was judged, frozen. Throws if it may not run. */
  require(): Action {
    if (this.#stopped !== undefined) throw this.#stopped;
    return this.#action;
  }

  /** Calls a function with the action that was judged. Throws, without calling it, if it may not run. */
  async run<T>(fn: (action: Action) => T | Promise<T>): Promise<T> {
    return fn(this.require());
  }
}
