import type { Countersign, DecideOptions, Intent } from "./client.js";
import { CountersignError } from "./errors.js";
import { hostOf, type Outgoing, type Reply } from "./http.js";
import { canonical, frozen, frozenObject, isObject, sha256, type Json, type JsonObject } from "./json.js";

/** The payment that a seller requires: the body of a 402 answer, with one offer in `accepts`. */
export interface PaymentRequired {
  x402Version: number;
  resource: { url: string };
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- every signer has its own types
  accepts: any[];
  extensions?: any;
}

/** Signs a payment for the only offer in `accepts`. An x402Client of @x402/core is a Signer. */
export interface Signer {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
  createPaymentPayload(required: any): Promise<unknown>;
}

export interface PayOptions extends DecideOptions {
  method?: string;
  headers?: Record<string, string>;
  /** A string or bytes, not a stream, because it is sent twice. */
  body?: string | Uint8Array<ArrayBuffer>;
  /** Milliseconds to wait for a person's approval if the decision needs one; default: no wait. */
  approval?: number;
}

export async function pay(client: Countersign, url: string, signer: Signer, options: PayOptions): Promise<Response> {
  const { http } = client;
  const request: Outgoing = { method: options.method ?? "GET", url, headers: options.headers ?? {}, body: options.body };
  const unpaid = await http.once(request);
  if (unpaid.status !== 402) return responseOf(unpaid);
  const { required, offer } = chosen(unpaid, url);
  const intent: Intent = frozenObject({
    resourceUrl: url, method: request.method, scheme: offer.scheme, network: offer.network, asset: offer.asset, payTo: offer.payTo,
    amountUnits: offer.amount, paymentPayloadResource: isObject(required.resource) ? required.resource.url : undefined,
  }, "offer") as JsonObject & Intent;
  const decision = await client.decide(intent, options);
  if (options.approval !== undefined) await decision.approved({ timeout: options.approval });
  return decision.execute(async () => {
    const payload = frozen(await signer.createPaymentPayload({ ...required, accepts: [offer] }), "payment");
    checkSigned(payload, offer);
    const signature = Buffer.from(canonical(payload)).toString("base64");
    const paid = await http.patiently({ ...request, headers: { ...request.headers, "PAYMENT-SIGNATURE": signature } }, ({ status }) => status >= 500 || status === 429)
      .catch((cause: unknown) => {
        throw unconfirmed(cause instanceof Error ? cause.message : String(cause), { cause, ...(cause instanceof CountersignError && cause.status !== undefined && { status: cause.status }) });
      });
    if (paid.status === 402) { // check: second-offer
      throw unconfirmed("the seller answered with 402 again, and no second payment was signed", { status: 402 });
    }
    if (paid.status >= 300 && paid.status < 400) { // check: redirect-after-payment
      throw unconfirmed("the seller redirected the paid request, and the redirect was not followed", { status: paid.status });
    }
    Object.assign(decision.evidence, {
      outcome: paid.status < 400 ? "fulfilled" : "failed", responseStatus: paid.status, responseBodyHash: sha256(paid.bytes), settlementId: transactionOf(paid),
    });
    return responseOf(paid);
  });
}

/** Returns the error of a failure after the payment was sent. */
function unconfirmed(why: string, more: { status?: number; cause?: unknown }): CountersignError {
  return new CountersignError("payment_unconfirmed", `the payment was sent, and the seller may have taken it: ${why}. Find out whether it was taken before you pay again.`, more);
}

/** Returns the first offer of a 402 answer whose signed payment can be checked: scheme exact on an EVM network. */
function chosen(reply: Reply, url: string): { required: JsonObject; offer: JsonObject } {
  const required = decoded(reply.headers.get("PAYMENT-REQUIRED"));
  const offers = isObject(required) && Array.isArray(required.accepts) ? required.accepts : [];
  const offer = offers.filter(isObject).find((o) => o.scheme === "exact" && /^eip155:\d+$/.test(String(o.network)) && /^(0|[1-9]\d*)$/.test(String(o.amount)));
  if (!isObject(required) || offer === undefined) { // check: offer
    throw new CountersignError("refused", `${hostOf(url)} requires a payment, but none of its offers can be checked (scheme exact on an EVM network)`, { status: 402 });
  }
  return { required: frozenObject(required, "offer"), offer: frozenObject(offer, "offer") };
}

/** Throws unless the signed payment matches the decided offer. */
function checkSigned(payload: Json, offer: JsonObject): void {
  const inner = isObject(payload) ? payload.payload : undefined;
  const authorization = isObject(inner) ? inner.authorization : undefined;
  if (!isObject(payload) || !isObject(authorization)) { // check: signed-readable
    throw new CountersignError("offer_changed", "the signed payment cannot be read and was not sent");
  }
  if (canonical(payload.accepted ?? null) !== canonical(offer)) { // check: signed-offer
    throw new CountersignError("offer_changed", "the signed offer differs from the decided offer; the payment was not sent");
  }
  if (String(authorization.to).toLowerCase() !== String(offer.payTo).toLowerCase()) { // check: signed-recipient
    throw new CountersignError("offer_changed", "the signed recipient differs from the decided recipient; the payment was not sent");
  }
  if (String(authorization.value) !== offer.amount) { // check: signed-amount
    throw new CountersignError("offer_changed", "the signed amount differs from the decided amount; the payment was not sent");
  }
}

function transactionOf(reply: Reply): string | undefined {
  const settled = decoded(reply.headers.get("PAYMENT-RESPONSE"));
  return isObject(settled) && typeof settled.transaction === "string" && settled.transaction !== "" ? settled.transaction.slice(0, 200) : undefined;
}

/** Returns the JSON value that a header has in base64; undefined if it has none. */
function decoded(header: string | null): unknown {
  try {
    return JSON.parse(Buffer.from(header ?? "", "base64").toString());
  } catch {
    return undefined;
  }
}

function responseOf({ status, headers, bytes }: Reply): Response {
  const kept = new Headers(headers);
  kept.delete("Content-Encoding"); // the body was decoded
  kept.delete("Content-Length");
  return new Response([101, 204, 205, 304].includes(status) ? null : bytes, { status, headers: kept });
}
