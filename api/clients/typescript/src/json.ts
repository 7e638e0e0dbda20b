import { createHash } from "node:crypto";
import { CountersignError } from "./errors.js";

/** Any JSON value. A bigint is an integer of any size. */
export type Json = null | boolean | number | bigint | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

/**
 * Returns a deep copy that cannot be changed. Actions and intents are copied, so that later
 * changes by the program cannot change what is executed. Undefined members are left out. A
 * value that cannot be encoded as JSON throws.
 */
export function frozen(value: unknown, path: string): Json {
  switch (typeof value) {
    case "boolean":
    case "bigint":
      return value;
    case "number":
      if (Number.isFinite(value) && !(Number.isInteger(value) && Math.abs(value) > Number.MAX_SAFE_INTEGER && Math.abs(value) < 1e21)) return value;
      throw new CountersignError("misused", `${path} must be a finite number; an integer beyond 2^53-1 must be a bigint`);
    case "string":
      if (!/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)) return value;
      throw new CountersignError("misused", `${path} must not contain an unpaired surrogate`);
    case "object": {
      if (value === null) return null;
      if (Array.isArray(value)) return Object.freeze(value.map((item, i) => frozen(item, `${path}[${i}]`)));
      const prototype: unknown = Object.getPrototypeOf(value);
      if (prototype !== Object.prototype && prototype !== null) break;
      const members = Object.entries(value).filter(([, member]) => member !== undefined);
      return Object.freeze(Object.fromEntries(members.map(([name, member]) => [name, frozen(member, `${path}.${name}`)])));
    }
  }
  throw new CountersignError("misused", `${path} must be a JSON value`);
}

/** Returns a frozen copy of an object without its null members, which mean the same as absent ones in a request. */
export function frozenObject(value: unknown, path: string): JsonObject {
  const copy = frozen(value, path);
  if (!isObject(copy)) throw new CountersignError("misused", `${path} must be an object`);
  return Object.freeze(Object.fromEntries(Object.entries(copy).filter(([name, member]) => member !== null || name === "toolArguments")));
}

/** Encodes a value as canonical JSON (RFC 8785), except that an integer beyond 2^53-1 keeps its digits. */
export function canonical(value: Json): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  if (isObject(value)) {
    const names = Object.keys(value).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return "{" + names.map((name) => JSON.stringify(name) + ":" + canonical(value[name]!)).join(",") + "}";
  }
  return JSON.stringify(value);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the SHA-256 of data in hexadecimal digits. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
