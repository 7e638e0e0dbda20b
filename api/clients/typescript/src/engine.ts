/**
 * The gate in this process: the engine of the service as WebAssembly. It returns the same
 * verdicts as the service, byte for byte, and sends nothing over the network.
 */
import { readFile } from "node:fs/promises";

/** Judges actions: `new Countersign({ url, engine: await loadEngine() })`. */
export interface Engine {
  /** Returns the gate's answer to a request. Both are JSON texts. It throws an Error for a request that the gate refuses. */
  verdict(action: string): string;
}

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  take(length: number): number;
  judge(): bigint;
}

/** Loads the engine of this package, or the WebAssembly module in another file or in bytes. */
export async function loadEngine(from: URL | Uint8Array<ArrayBuffer> = new URL("./engine.wasm", import.meta.url)): Promise<Engine> {
  const bytes = from instanceof Uint8Array ? from : await readFile(from);
  let exports: Exports;
  const view = () => new DataView(exports.memory.buffer);
  // The engine is a pure function. These functions give the Go runtime only what it needs to
  // start: no arguments, no files, no random bytes, and a clock that counts its calls.
  let ticks = 0n;
  const system: Record<string, (...args: number[]) => number> = {
    args_sizes_get: (count = 0, size = 0) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), 0),
    environ_sizes_get: (count = 0, size = 0) => (view().setUint32(count, 0, true), view().setUint32(size, 0, true), 0),
    clock_time_get: (_id, _precision, into = 0) => (view().setBigUint64(into, ++ticks, true), 0),
    fd_write(_fd = 0, vectors = 0, count = 0, written = 0) {
      let length = 0;
      for (let i = 0; i < count; i++) length += view().getUint32(vectors + 8 * i + 4, true);
      view().setUint32(written, length, true);
      return 0;
    },
    proc_exit(code) {
      throw new Error(`the engine exited with code ${code}`);
    },
  };
  const answered = new Set(["args_get", "environ_get", "random_get", "sched_yield"]);
  const badDescriptor = 8;
  const imports = new Proxy(system, { get: (target, name: string) => target[name] ?? (() => (answered.has(name) ? 0 : badDescriptor)) });
  const module = await WebAssembly.compile(bytes);
  const wanted = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, imports[name]!]));
  exports = (await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wanted })).exports as unknown as Exports;
  exports._initialize();
  return {
    verdict(action) {
      const request = new TextEncoder().encode(action);
      const into = exports.take(request.length); // call take first, because it may replace memory.buffer
      new Uint8Array(exports.memory.buffer, into, request.length).set(request);
      const place = exports.judge(); // bits: 32 for the address of the answer, 1 for a refusal, 31 for the length
      const address = Number(place >> 32n), length = Number(place & 0x7fffffffn), refused = (place & 0x80000000n) !== 0n;
      const answer = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, address, length).slice());
      if (refused) throw new Error(answer);
      return answer;
    },
  };
}
