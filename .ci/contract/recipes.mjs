// The recipes of the pages, in the frameworks they are for: every answer but a low
// 200 stops the tool.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, unlinkSync, writeFileSync } from "node:fs";

const base = process.argv[2];
const recipe = async (name) => {
  const page = await (await fetch(`${base}/guides/${name}.md`)).text();
  const code = page.match(new RegExp("```\\w+ recipe=" + name + "\\n([\\s\\S]*?)```"))[1];
  assert.ok(code.trim().split("\n").length <= 15, `${name} has ${code.trim().split("\n").length} lines`);
  return code;
};
const mark = `${process.cwd()}/ran`;
const cases = [
  [`echo low`, true, "low"],
  [`  echo low  `, true, "trimmed"],
  [`touch ${mark} && git push --force origin main`, false, "critical"],
  [`touch ${mark} && chmod -R 777 .`, false, "medium or above"],
  [`touch ${mark} #` + "x".repeat(2000), false, "longer than 2,000 characters"],
  [``, false, "empty"],
];
const runs = {
  "openai-agents": (m) => (command) => m.shell.invoke({ context: {} }, JSON.stringify({ command })),
  langchain: (m) => (command) => m.shell.invoke({ command }),
  "ai-sdk": (m) => (command) => m.shell.execute({ command }, { toolCallId: "1", messages: [] }),
};
for (const [name, bind] of Object.entries(runs)) {
  writeFileSync(`${name}.mjs`, await recipe(name));
  const call = bind(await import(`${process.cwd()}/${name}.mjs`));
  for (const [command, runsIt, what] of cases) {
    const said = await call(command).then(String, (e) => `threw ${e.message}`);
    assert.equal(said.includes("low\n") && !said.includes("stopped"), runsIt, `${name}, ${what}: ${said}`);
    assert.ok(!existsSync(mark), `${name} ran what is ${what}`);
  }
  const key = process.env.KEY;
  process.env.KEY = "svck_bad";
  const said = await call("echo low").then(String, (e) => `threw ${e.message}`);
  process.env.KEY = key;
  assert.ok(!said.includes("low\n"), `${name} runs without a verdict: ${said}`);
  console.log(`contract: recipe ${name} stops`);
}

writeFileSync("gate.sh", await recipe("claude-code-hooks"));
if (spawnSync("jq", ["--version"]).status === 0) {
  for (const [command, runsIt, what] of cases) {
    const hook = spawnSync("sh", ["gate.sh"], { input: JSON.stringify({ tool_name: "Bash", tool_input: { command } }), encoding: "utf8" });
    assert.equal(hook.status, runsIt ? 0 : 2, `claude-code-hooks, ${what}: ${hook.stderr}`);
  }
  const broken = spawnSync("sh", ["gate.sh"], { input: "not JSON", encoding: "utf8" });
  assert.equal(broken.status, 2, "claude-code-hooks lets a broken event pass");
  console.log("contract: recipe claude-code-hooks stops");
} else console.log("contract: skipped claude-code-hooks, jq is not there");
if (existsSync(mark)) unlinkSync(mark);
