// An agent that runs a shell command only if the gate's verdict is low risk:
//
//	COUNTERSIGN_URL=https://... COUNTERSIGN_KEY=svck_... node agent.mjs "git status" "rm -rf /"
//
// In a real agent a model proposes the commands; here they are the arguments. The program
// prints the text that the model would read.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Countersign } from "countersign";
import { guarded } from "countersign/middleware";

const countersign = new Countersign({ url: process.env.COUNTERSIGN_URL, apiKey: process.env.COUNTERSIGN_KEY });
const run = promisify(execFile);

const shell = guarded(countersign, { action: (command) => ({ command }) }, async (command) => (await run("sh", ["-c", command])).stdout);

for (const command of process.argv.slice(2)) console.log(`$ ${command}\n${await shell(command)}`);
