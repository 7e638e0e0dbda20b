import { CountersignError } from "./errors.js";
import { isObject, type JsonObject } from "./json.js";

const attempts = 4;
/** Limit of all waits for one request together, in milliseconds. If a server asks for a longer wait, the request fails. */
const patience = 30_000;
const firstWait = 500;
/** Size of the largest accepted answer, in bytes. */
const maxAnswer = 8 << 20;

/** An answer with its complete body. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A request. */
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

  /** Sends a request once. It throws if there is no complete answer. It does not follow redirects: a redirect is an answer. */
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
      throw new CountersignError("unavailable", `${hostOf(request.url)} sent no complete answer`, { cause });
    }
    return { status: response.status, headers: response.headers, bytes: new Uint8Array(Buffer.concat(bytes)) };
  }

  /**
   * Sends a request until `later` returns false for the answer. It tries at most four times
   * and waits at most 30 seconds in total. All attempts send the same idempotency key or
   * payment.
   */
  async patiently(request: Outgoing, later: (reply: Reply) => boolean): Promise<Reply> {
    let waited = 0;
    for (let attempt = 1; ; attempt++) {
      let wait = firstWait * 2 ** (attempt - 1);
      let failure: CountersignError;
      try {
        const reply = await this.once(request);
        if (!later(reply)) return reply;
        failure = new CountersignError("unavailable", `${hostOf(request.url)} answered ${reply.status} with an unusable body`, { status: reply.status });
        const asked = reply.headers.get("Retry-After") ?? "";
        const seconds = /^\d{1,9}$/.test(asked) ? Number(asked) : (Date.parse(asked) - this.clock.now()) / 1000;
        if (!Number.isNaN(seconds)) wait = Math.max(0, seconds * 1000);
        if (waited + wait > patience) { // check: patience
          throw new CountersignError("unavailable", `${hostOf(request.url)} asked for a wait of ${wait / 1000} seconds, which is too long`, { status: reply.status });
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

/** Returns the JSON value of an answer; undefined if the body is not JSON. */
export function jsonOf(reply: Reply): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(reply.bytes));
  } catch {
    return undefined;
  }
}

/** Returns the member error of an answer, made safe to show. */
export function errorOf(body: unknown): string {
  return isObject(body) && typeof body.error === "string" ? shown(body.error) : "";
}

/** Makes a text of a server safe to show: control characters become spaces, and only the first 500 characters are kept. */
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
