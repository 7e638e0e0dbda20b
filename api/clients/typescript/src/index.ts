export { Countersign, type Action, type DecideOptions, type Evidence, type Intent, type Options } from "./client.js";
export type { Decision } from "./decision.js";
export { CountersignError, type Code } from "./errors.js";
export type { Clock } from "./http.js";
export type { PaymentRequired, PayOptions, Signer } from "./pay.js";
export { Keys, type KeySet, type Verified } from "./record.js";
export type { Verdict } from "./verdict.js";
