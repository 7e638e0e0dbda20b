// Tools of three frameworks inside the wrappers, with a real gate:
//
//	COUNTERSIGN_URL=... COUNTERSIGN_KEY=... node frameworks.mjs
//
// A command of low risk runs once; a critical one does not run, and the model is told so in
// our words. The recipes of the pages are run in the same way.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { tool as langchain } from "@langchain/core/tools";
import { RunContext, tool as openai } from "@openai/agents";
import { tool as ai } from "ai";
import { Countersign } from "countersign";
import { aiSdkTool, langchainTool, openaiTool } from "countersign/middleware";
import { z } from "zod";

const client = new Countersign({ url: process.env.COUNTERSIGN_URL, apiKey: process.env.COUNTERSIGN_KEY });
const guard = { action: ({ command }) => ({ command }) };
const parameters = z.object({ command: z.string() });
let ran = [];
const execute = async ({ command }) => (ran.push(command), `ran ${command}`);

const frameworks = {
  "AI SDK": () => {
    const tool = aiSdkTool(client, guard, ai({ description: "Runs a command.", inputSchema: parameters, execute }));
    return (input) => tool.execute(input, { toolCallId: "1", messages: [] });
  },
  "OpenAI Agents": () => {
    const tool = openaiTool(client, guard, openai({ name: "shell", description: "Runs a command.", parameters, execute }));
    return (input) => tool.invoke(new RunContext(), JSON.stringify(input));
  },
  LangChain: () => {
    const tool = langchainTool(client, guard, langchain(execute, { name: "shell", description: "Runs a command.", schema: parameters }));
    return (input) => tool.invoke(input);
  },
};
for (const [name, make] of Object.entries(frameworks)) {
  const call = make();
  ran = [];
  assert.equal(await call({ command: "git status" }), "ran git status", name);
  const said = await call({ command: "git push --force origin main" });
  assert.match(said, /^Countersign stopped this action and nothing was run: .*git\.push\.force-protected.*Instead: push a new branch/, name);
  assert.deepEqual(ran, ["git status"], name);
  console.log(`clients: ${name}, a low command runs, a critical one does not`);
}

// The recipes, exactly as the pages have them.
const guide = async (name) => (await fetch(`${process.env.COUNTERSIGN_URL}/guides/${name}.md`)).text();
const recipe = async (name) => {
  const code = (await guide(name)).match(new RegExp("```js recipe=" + name + "\\n([\\s\\S]*?)```"))[1];
  assert.ok(code.trim().split("\n").length <= 15, `${name} has ${code.trim().split("\n").length} lines`);
  writeFileSync(`recipe-${name}.mjs`, code);
  return import(`${process.cwd()}/recipe-${name}.mjs`);
};
const mark = `${process.cwd()}/ran`;
const stops = [`touch ${mark} && git push --force origin main`, `touch ${mark} && chmod -R 777 .`, `touch ${mark} #` + "x".repeat(2000), ``];
const recipes = {
  "openai-agents": (m) => (command) => m.shell.invoke(new RunContext(), JSON.stringify({ command })),
  langchain: (m) => (command) => m.shell.invoke({ command }),
  "ai-sdk": (m) => (command) => m.shell.execute({ command }, { toolCallId: "1", messages: [] }),
};
process.env.KEY = process.env.COUNTERSIGN_KEY;
for (const [name, bind] of Object.entries(recipes)) {
  const call = bind(await recipe(name));
  assert.equal(await call("echo low"), "low\n", name);
  for (const command of stops) assert.match(await call(command), /nothing was run/, `${name}: ${command}`);
  assert.ok(!existsSync(mark), `${name} ran what the gate stops`);
  console.log(`clients: recipe ${name}, a low command runs, all others stop`);
}
process.env.KEY = "svck_bad"; // a recipe without a verdict runs nothing
const withoutKey = recipes["ai-sdk"](await import(`${process.cwd()}/recipe-ai-sdk.mjs?bad`));
assert.match(await withoutKey("echo low"), /nothing was run/);

// What the model gets of a tool that throws, without our wrapper and in it.
const throws = openai({ name: "shell", description: "Runs a command.", parameters, execute: async () => { throw new Error("the reason"); } });
const sdkSays = "An error occurred while running the tool. Please try again.";
assert.equal(await throws.invoke(new RunContext(), `{"command":"git status"}`), sdkSays);
assert.ok((await guide("openai-agents")).includes(sdkSays), "the page says what the SDK says");
const wrapped = openaiTool(client, guard, throws);
assert.match(await wrapped.invoke(new RunContext(), "not JSON"), /^nothing was run: the arguments are not JSON/);

// A purchase by the recipe of the page, if the wallet has money.
if (process.env.WALLET) {
  const { pay } = await recipe("gate-a-payment");
  const answer = await pay(`${process.env.COUNTERSIGN_URL}/api/agent-services/action-safety/quick`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: `{"command":"git status"}` });
  assert.equal(answer.status, 200);
  console.log("clients: recipe gate-a-payment, paid");
}
