/**
 * Wrappers for frameworks. They request a verdict or a decision before each tool call. If
 * the call is stopped, the model gets the error text of this package as the result of the
 * tool, because the error texts of the frameworks often say "try again". The types of the
 * frameworks are not imported, so no framework has to be installed.
 */
import type { Action, Countersign, DecideOptions, Evidence, Intent } from "./client.js";
import { CountersignError } from "./errors.js";
import { frozen, type Json } from "./json.js";
import type { PayOptions, Signer } from "./pay.js";

/** Maps the input of a tool call to an action for the gate, or to an intent for a decision. */
export type Guard<Input> = (
  | { action: (input: Input) => Action }
  | ({ intent: (input: Input) => Intent } & DecideOptions)
) & {
  /** Milliseconds to wait for a person's approval if the decision needs one; default: no wait. */
  approval?: number;
};

/**
 * Wraps a function so that it runs only after a verdict or a decision permits it. The wrapper
 * returns the result of the inner function, or a text for the model if the call is stopped.
 * The inner function gets a frozen copy of its input.
 */
export function guarded<Input, Output>(client: Countersign, guard: Guard<Input>, inner: (input: Input, evidence: Evidence) => Output | Promise<Output>): (input: Input) => Promise<Output | string> {
  return (input) => orText(async () => {
    const copy = frozen(input, "input") as Input;
    if ("action" in guard) return (await client.gate(guard.action(copy))).run(() => inner(copy, {}));
    const decision = await client.decide(guard.intent(copy), guard);
    if (guard.approval !== undefined) await decision.approved({ timeout: guard.approval });
    return decision.execute(() => inner(copy, decision.evidence));
  });
}

async function orText<T>(call: () => Promise<T>): Promise<T | string> {
  try {
    return await call();
  } catch (error) {
    // After these two errors something has happened that the program must handle, not the model.
    const done = ["receipt_missing", "payment_unconfirmed"];
    if (error instanceof CountersignError && !done.includes(error.code)) return error.message;
    throw error;
  }
}

function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch (cause) {
    throw new CountersignError("misused", "nothing was run: the arguments are not JSON", { cause });
  }
}

/** Wraps a tool of the AI SDK (`ai`). */
export function aiSdkTool<Input, Tool extends { execute?: ((input: Input, options: never) => unknown) | undefined }>(client: Countersign, guard: Guard<Input>, tool: Tool): Tool {
  const { execute } = tool;
  if (execute === undefined) throw new CountersignError("misused", "the tool must have a function execute");
  return { ...tool, execute: (input: Input, options: never) => guarded(client, guard, (copy) => execute(copy, options))(input) };
}

/**
 * Wraps a tool of the OpenAI Agents SDK (`@openai/agents`). The SDK hides errors of the tool
 * from this wrapper unless the tool has `errorFunction: null`. With an intent, the receipt of
 * a failed call would otherwise say "fulfilled".
 */
export function openaiTool<Input, Tool extends { invoke: (context: never, input: string, details?: never) => Promise<unknown> }>(client: Countersign, guard: Guard<Input>, tool: Tool): Tool {
  const invoke = (context: never, input: string, details?: never) => orText(() =>
    guarded<Input, unknown>(client, guard, (copy) => tool.invoke(context, JSON.stringify(copy), details))(parsed(input) as Input));
  return { ...tool, invoke };
}

/** Wraps a tool of LangChain (`tool(...)` of `@langchain/core/tools`). */
export function langchainTool<Input, Tool extends { func: (input: Input, ...rest: never[]) => unknown }>(client: Countersign, guard: Guard<Input>, tool: Tool): Tool {
  const func = (input: Input, ...rest: never[]) => guarded<Input, unknown>(client, guard, (copy) => tool.func(copy, ...rest))(input);
  return Object.assign(Object.create(Object.getPrototypeOf(tool)) as Tool, tool, { func });
}

/** Wraps an MCP client (`@modelcontextprotocol/sdk` or `/client`) so that each tool call needs a decision. */
export function mcpClient<Client extends { callTool: (params: never, ...rest: never[]) => Promise<unknown> }>(
  client: Countersign, inner: Client, server: { serverId: string; serverUrl?: string; declaredRisk?: (tool: string) => Intent["declaredRisk"]; approval?: number } & DecideOptions,
): Client {
  const { serverId, serverUrl, declaredRisk, approval, ...options } = server;
  const callTool = async ({ name, arguments: args, ...others }: { name: string; arguments?: Json }, ...rest: never[]) => {
    const result = await orText(async () => {
      const risk = declaredRisk?.(name);
      const decision = await client.decide({ serverId, toolName: name, toolArguments: args ?? {}, ...(serverUrl && { serverUrl }), ...(risk && { declaredRisk: risk }) }, options);
      if (approval !== undefined) await decision.approved({ timeout: approval });
      return decision.execute(async (intent) => {
        const said = await inner.callTool({ ...others, name: intent.toolName, arguments: intent.toolArguments } as never, ...rest);
        if ((said as { isError?: boolean }).isError) decision.evidence.outcome = "failed";
        return said;
      });
    });
    return typeof result === "string" ? { isError: true, content: [{ type: "text", text: result }] } : result;
  };
  return new Proxy(inner, {
    get(target, name) {
      if (name === "callTool") return callTool;
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if ((args[0] as { method?: unknown } | undefined)?.method === "tools/call") throw new CountersignError("misused", "nothing was called: use callTool to call tools");
        return member.apply(target, args) as unknown;
      };
    },
  });
}

/** Returns a fetch that pays with x402 if the organization's policy allows the payment. */
export function payingFetch(client: Countersign, signer: Signer, options: Omit<PayOptions, "method" | "headers" | "body"> = {}): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    return client.pay(request.url, signer, { ...options, method: request.method, headers: Object.fromEntries(request.headers), ...(body && { body }) });
  };
}
