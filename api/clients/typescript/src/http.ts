import { CountersignError } from "./errors.js";
import { isObject, type JsonObject } from "./json.js";

const attempts = 4;
/** Of all waits for one request, in milliseconds. A server that asks for more gets an error. */
const patience = 30_000;
const firstWait = 500;
/** The largest answer that is read, in bytes. */
const maxAnswer = 8 << 20;

/** An answer whose body was read to its end. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** What a request is made of. */
export interface Outgoing {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer> | undefined;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  sleep(milliseconds: number): Promise<void>;
}

export class Http {
  constructor(private readonly fetch: typeof globalThis.fetch, private readonly timeout: number, readonly clock: Clock) {}

  /** Sends a request once. A missing answer, and a part of one, is an error. A redirect is an answer. */
  async once(request: Outgoing): Promise<Reply> {
    const signal = AbortSignal.timeout(this.timeout);
    let response: Response;
    const bytes: Uint8Array[] = [];
    let length = 0;
    try {
      response = await this.fetch(request.url, { method: request.method, headers: request.headers, body: request.body ?? null, redirect: "manual", signal });
      for (const reader = response.body?.getReader(); reader; ) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.byteLength;
        if (length > maxAnswer) { // check: answer-size
          throw new CountersignError("unavailable", `the answer of ${hostOf(request.url)} is too large`, { status: response.status });
        }
        bytes.push(value);
      }
    } catch (cause) {
      if (cause instanceof CountersignError) throw cause;
      throw new CountersignError("unavailable", `${hostOf(request.url)} gave no answer, or only a part of one`, { cause });
    }
    return { status: response.status, headers: response.headers, bytes: new Uint8Array(Buffer.concat(bytes)) };
  }

  /**
   * Sends a request until there is an answer that does not say "later": at most four
   * times, and with at most 30 seconds of waiting. The request is the same each time,
   * so its idempotency key or payment is.
   */
  async patiently(request: Outgoing, later: (reply: Reply) => boolean): Promise<Reply> {
    let waited = 0;
    for (let attempt = 1; ; attempt++) {
      let wait = firstWait * 2 ** (attempt - 1);
      let failure: CountersignError;
      try {
        const reply = await this.once(request);
        if (!later(reply)) return reply;
        failure = new CountersignError("unavailable", `${hostOf(request.url)} answered ${reply.status} without a usable body`, { status: reply.status });
        const asked = reply.headers.get("Retry-After") ?? "";
        const seconds = /^\d{1,9}$/.test(asked) ? Number(asked) : (Date.parse(asked) - this.clock.now()) / 1000;
        if (!Number.isNaN(seconds)) wait = Math.max(0, seconds * 1000);
        if (waited + wait > patience) { // check: patience
          throw new CountersignError("unavailable", `${hostOf(request.url)} asks to wait ${wait / 1000} seconds`, { status: reply.status });
        }
      } catch (error) {
        if (!(error instanceof CountersignError) || error.status !== undefined) throw error;
        failure = error;
      }
      if (attempt === attempts) throw failure;
      waited += wait;
      await this.clock.sleep(wait);
    }
  }
}

/** The JSON value of an answer, undefined if it is none. */
export function jsonOf(reply: Reply): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(reply.bytes));
  } catch {
    return undefined;
  }
}

/** What an answer says in its member error, fit to be shown. */
export function errorOf(body: unknown): string {
  return isObject(body) && typeof body.error === "string" ? shown(body.error) : "";
}

/** Makes a text of another side safe to show: control characters become spaces, and at most 500 characters are kept. */
export function shown(text: unknown): string {
  return typeof text === "string" ? text.replace(/[^\P{C}]+/gu, " ").slice(0, 500) : "";
}

export function hostOf(url: string): string {
  return new URL(url).host;
}

export function asObject(body: unknown, what: string): JsonObject {
  if (!isObject(body)) { // check: object
    throw new CountersignError("not_verified", `${what} is not an object`);
  }
  return body;
}
