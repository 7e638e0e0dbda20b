// Prints the engine's verdict for each line of standard input, which is a JSON action. FOLDER is a compiled package:
//
//	node verdicts.mjs FOLDER
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(process.argv[2]);
const { loadEngine } = await import(`${folder}/dist/engine.js`);
let started = performance.now();
const engine = await loadEngine();
const loaded = performance.now() - started;
const times = [];
for await (const line of createInterface({ input: process.stdin })) {
  started = performance.now();
  try {
    console.log(engine.verdict(line));
  } catch (refusal) {
    console.log(`refused: ${refusal.message}`);
  }
  times.push(performance.now() - started);
}
const first = times[0];
times.sort((a, b) => a - b);
console.error(`as WebAssembly: loaded in ${loaded.toFixed(0)} ms, first verdict ${first.toFixed(0)} ms, median ${times[times.length >> 1].toFixed(2)} ms`);
