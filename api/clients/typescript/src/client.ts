import { randomUUID } from "node:crypto";
import type { components } from "./contract.js";
import { Decision } from "./decision.js";
import { CountersignError, notVerified } from "./errors.js";
import { asObject, errorOf, hostOf, Http, jsonOf, shown, type Clock } from "./http.js";
import { canonical, frozenObject, isObject, sha256, type JsonObject } from "./json.js";
import { pay, type PayOptions, type Signer } from "./pay.js";
import { Keys, type KeySet, type Verified } from "./record.js";
import { Verdict } from "./verdict.js";

type Schemas = components["schemas"];

/** An action for the gate: a command, and optional facts such as its folder and branch. */
export type Action = Readonly<Schemas["ActionSafetyQuickGateRequest"]>;
/** A payment (x402) or a tool call (MCP), exactly as it will be executed. */
export type Intent = Readonly<Schemas["IntentInput"]>;
/** Members of the receipt of an execution, in addition to its outcome. */
export type Evidence = Partial<Pick<Schemas["AssuranceBindReceiptRequest"], "settlementId" | "evidenceHashes" | "responseStatus" | "responseBodyHash">> & {
  /** Set "failed" if the function returned but its action failed. */
  outcome?: "fulfilled" | "failed";
};

export interface Options {
  /** Address of the service: https, or http on this machine. */
  url: string;
  /** API key for the gate: svck_... */
  apiKey?: string;
  /** Token for decisions: svco_..., with the scopes assurance:decide, assurance:receipt and assurance:read. */
  token?: string;
  /** Id of the organization whose decisions are accepted. */
  orgId?: string;
  /** Keys that are trusted to sign decisions, saved from /.well-known/jwks.json of the service. */
  keys?: KeySet;
  /** "run" also runs actions of medium risk; "stop", the default, stops them. */
  medium?: "run" | "stop";
  /** Engine that judges actions in this process instead of the service: see countersign/engine. */
  engine?: { verdict(action: string): string };
  /** Time limit of one attempt, in milliseconds; default 10,000. */
  timeout?: number;
  /** Function that sends requests; default: fetch of the platform. */
  fetch?: typeof globalThis.fetch;
  /** Clock for waits and validity; default: the platform's clock. */
  clock?: Clock;
}

export interface DecideOptions {
  /** Id of the agent's run; default: one id for each client. */
  runId?: string;
  agentId?: string;
  purpose?: string;
  /**
   * Identifies one intended purchase or call, for example the number of an order. A program
   * that sends the same key and the same `runId` after a restart gets the same decision.
   * Default: a new key, which all retries of this call use.
   */
  idempotencyKey?: string;
}

const receipts = "/api/assurance/receipts";
const quick = "/api/agent-services/action-safety/quick";
const risks = ["low", "medium", "high", "critical"];

/** A client of the service. It runs an action only after a verdict or a decision permits it. */
export class Countersign {
  readonly #options: Options;
  readonly #keys: Keys | undefined;
  readonly #runId = `run-${randomUUID()}`;
  /** @internal */
  readonly http: Http;
  /** Ids of the decisions that were executed. @internal */
  readonly used = new Set<string>();

  constructor(options: Options) {
    const url = new URL(options.url);
    const onThisMachine = url.protocol === "http:" && ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    if (url.protocol !== "https:" && !onThisMachine) { // check: https
      throw new CountersignError("misused", "url must use https, or http on this machine");
    }
    this.#options = { ...options, url: options.url.replace(/\/+$/, "") };
    this.#keys = options.keys && new Keys(options.keys);
    this.http = new Http(options.fetch ?? globalThis.fetch, options.timeout ?? 10_000,
      options.clock ?? { now: Date.now, sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)) });
  }

  /** Requests the gate's verdict on an action. It copies the action, so later changes to the argument have no effect. */
  async gate(action: Action): Promise<Verdict> {
    const judged = frozenObject(action, "action") as JsonObject & Action;
    const answer = await this.#judge(judged);
    if (answer.service !== "action-safety-quick-gate" || answer.status !== "scored") { // check: verdict
      throw notVerified("the answer is not a verdict");
    }
    const { failClosedOnUnmatched: _, ...bound } = judged;
    if (answer.actionHash !== sha256("svc-action-v1\n" + canonical(bound as JsonObject))) { // check: action
      throw notVerified("it belongs to another action");
    }
    const risk = answer.risk as string;
    if (!risks.includes(risk) || typeof answer.requiresApproval !== "boolean") { // check: risk-known
      throw notVerified("it has an unknown risk");
    }
    const ruleIds = Array.isArray(answer.matchedRuleIds) ? answer.matchedRuleIds.map(shown) : [];
    let stopped = false;
    if (risk !== "low" && !(risk === "medium" && this.#options.medium === "run")) { // check: risk
      stopped = true;
    }
    if (answer.requiresApproval) { // check: requires-approval
      stopped = true;
    }
    return new Verdict(judged, risk, ruleIds, stopped ? await this.#stopped(risk, ruleIds) : undefined);
  }

  async #judge(action: JsonObject): Promise<JsonObject> {
    if (this.#options.engine) return inProcess(this.#options.engine, action);
    const headers: Record<string, string> = { "Idempotency-Key": randomUUID() };
    if (this.#options.apiKey) headers["X-API-Key"] = this.#options.apiKey;
    const { body } = await this.#send("POST", quick, [200], headers, action);
    return body;
  }

  /** Returns the error of a verdict that stops an action. Its text tells a model the reason and the safer way. */
  async #stopped(risk: string, ruleIds: readonly string[]): Promise<CountersignError> {
    let why = `its risk is ${risk}${ruleIds.length > 0 ? ` (${ruleIds.join(", ")})` : ""}`;
    if (ruleIds[0] !== undefined && !this.#options.engine) {
      try { // If the rule cannot be read, the message does not explain it.
        const rule = jsonOf(await this.http.once({ method: "GET", url: `${this.#options.url}/api/rules/${encodeURIComponent(ruleIds[0])}`, headers: {} }));
        if (isObject(rule) && rule.title !== undefined) why += `. ${shown(rule.title)}: ${shown(rule.why)}${rule.instead ? `. Instead: ${shown(rule.instead)}` : ""}`;
      } catch { /* see above */ }
    }
    return new CountersignError("stopped", `Countersign stopped this action and nothing was run: ${why}. Do not try to do the same in another way; ask a person if it is needed.`);
  }

  /**
   * Requests a signed decision on a payment or a tool call. It copies the intent, so later
   * changes to the argument have no effect.
   */
  async decide(intent: Intent, options: DecideOptions = {}): Promise<Decision> {
    const decided = frozenObject(intent, "intent") as JsonObject & Intent;
    const { keys, orgId } = this.#forDecisions();
    const idempotencyKey = options.idempotencyKey ?? randomUUID();
    const { runId = this.#runId, agentId, purpose } = options;
    const protocol = "resourceUrl" in decided ? "x402" : "mcp";
    const request = frozenObject({ protocol, idempotencyKey, subject: { runId, agentId, purpose }, intent: decided }, "request");
    const { body } = await this.#send("POST", "/api/assurance/decisions", [200, 201], this.#bearer(), request);
    const verified = keys.verify(body, "application/vnd.svc.decision.v1+json");
    const { record } = verified;
    if (record.orgId !== orgId) { // check: organization
      throw notVerified("it belongs to another organization");
    }
    if (record.idempotencyKeyHash !== sha256(idempotencyKey)) { // check: idempotency-key
      throw notVerified("it belongs to another request");
    }
    const { toolArguments } = decided as JsonObject;
    const accepted = toolArguments === undefined ? decided : { ...decided, toolArguments: sha256(canonical(toolArguments)) };
    if (canonical(record.intent ?? null) !== canonical(accepted)) { // check: intent
      throw notVerified("it belongs to another intent");
    }
    if (record.assuranceActionHash !== actionHash(protocol, record.normalized)) { // check: action-hash
      throw notVerified("its action hash belongs to another action");
    }
    return new Decision(this, decided, verified);
  }

  /**
   * Fetches a URL and pays with x402 if the organization's policy allows the payment. The
   * signer can sign only the offer of the seller that was decided.
   */
  pay(url: string | URL, signer: Signer, options: PayOptions = {}): Promise<Response> {
    return pay(this, String(url), signer, options);
  }

  /** Returns the service's answer to the question whether a decision may still be acted on. @internal */
  async standing(id: string): Promise<JsonObject> {
    return (await this.#send("GET", `/api/assurance/decisions/${encodeURIComponent(id)}/standing`, [200], this.#bearer())).body;
  }

  /** Returns the approval or rejection of a decision; undefined before a person has reviewed it. @internal */
  async approval(id: string): Promise<Verified | undefined> {
    const { status, body } = await this.#send("GET", `/api/assurance/decisions/${encodeURIComponent(id)}/approval`, [200, 404], this.#bearer());
    return status === 404 ? undefined : this.#forDecisions().keys.verify(body, "application/vnd.svc.approval.v1+json");
  }

  /** Sends a receipt and returns the signed record of it. @internal */
  async report(receipt: JsonObject): Promise<Verified> {
    const { body } = await this.#send("POST", receipts, [200, 201], this.#bearer(), receipt);
    return this.#forDecisions().keys.verify(body, "application/vnd.svc.assurance-receipt.v1+json");
  }

  #forDecisions(): { keys: Keys; orgId: string } {
    const { orgId, token } = this.#options;
    if (this.#keys === undefined || !orgId || !token) { // check: configured
      throw new CountersignError("misused", "decisions need token, orgId and keys");
    }
    return { keys: this.#keys, orgId };
  }

  #bearer(): Record<string, string> {
    return { Authorization: `Bearer ${this.#options.token}` };
  }

  /** Sends a request to the service. It throws for an answer whose status is not in `good`, or whose body is not a JSON object. */
  async #send(method: string, path: string, good: readonly number[], headers: Record<string, string>, value?: JsonObject): Promise<{ status: number; body: JsonObject }> {
    const reply = await this.http.patiently({
      method, url: this.#options.url + path, headers: value ? { ...headers, "Content-Type": "application/json" } : headers, body: value && canonical(value),
    }, (answer) => answer.status >= 500 || (answer.status === 429 && !isQuota(jsonOf(answer))) || (good.includes(answer.status) && jsonOf(answer) === undefined));
    const { status } = reply;
    const body = jsonOf(reply);
    const says = errorOf(body) || `status ${status}`;
    if (isQuota(body)) { // check: quota
      throw new CountersignError("quota_exhausted", `the free calls of the month are used up: ${says}`, { status, upgradeUrl: shown(body.upgradeUrl) });
    }
    if (status === 402) { // check: payment-required
      throw new CountersignError("payment_required", `the call needs a payment or an API key: ${says}`, { status });
    }
    if (!good.includes(status)) { // check: status
      const nothing = path === receipts ? "" : ", and nothing was run"; // receipts are sent after the function has run
      throw new CountersignError("refused", `${hostOf(this.#options.url)} refused the request${nothing}: ${says}`, { status });
    }
    return { status, body: asObject(body, "the answer of the service") };
  }
}

function inProcess(engine: { verdict(action: string): string }, action: JsonObject): JsonObject {
  try {
    return asObject(JSON.parse(engine.verdict(canonical(action))), "the verdict");
  } catch (cause) {
    throw new CountersignError("refused", `the gate refused the action, and nothing was run: ${shown((cause as Error).message)}`, { cause });
  }
}

function isQuota(body: unknown): body is JsonObject {
  return isObject(body) && body.code === "quota_exhausted";
}

const bound = ["method", "resourceUrl", "scheme", "network", "asset", "payTo", "amountUnits", "paymentIdentifier", "serverId", "serverUrl", "toolName", "toolArgumentsHash"];

/** Computes the assuranceActionHash of an intent in normal form. */
function actionHash(protocol: string, normalized: unknown): string | undefined {
  if (!isObject(normalized)) return undefined;
  const names = "amountUnits" in normalized ? bound : [...bound, "amountUsd"];
  const action = Object.fromEntries(Object.entries(normalized).filter(([name]) => names.includes(name)));
  return sha256("svc-assurance-action-v1\n" + canonical({ intent: action, protocol }));
}
