// Tools of three frameworks inside the wrappers, with a real gate:
//
//	COUNTERSIGN_URL=... COUNTERSIGN_KEY=... node frameworks.mjs
//
// A command of low risk runs once; a critical one does not run, and the model is told so in
// our words.
import assert from "node:assert/strict";
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
