// The recipe of the page about hooks over HTTP: every answer but a low 200 stops the tool.
// The recipes with our package are run by .ci/clients.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";

const page = await (await fetch(`${process.argv[2]}/guides/claude-code-hooks.md`)).text();
const code = page.match(/```\w+ recipe=claude-code-hooks\n([\s\S]*?)```/)[1];
assert.ok(code.trim().split("\n").length <= 15, `claude-code-hooks has ${code.trim().split("\n").length} lines`);
writeFileSync("gate.sh", code);
const cases = [
  [`echo low`, true, "low"],
  [`  echo low  `, true, "trimmed"],
  [`touch ran && git push --force origin main`, false, "critical"],
  [`touch ran && chmod -R 777 .`, false, "medium or above"],
  [`touch ran #` + "x".repeat(2000), false, "longer than 2,000 characters"],
  [``, false, "empty"],
];
if (spawnSync("jq", ["--version"]).status === 0) {
  for (const [command, runsIt, what] of cases) {
    const hook = spawnSync("sh", ["gate.sh"], { input: JSON.stringify({ tool_name: "Bash", tool_input: { command } }), encoding: "utf8" });
    assert.equal(hook.status, runsIt ? 0 : 2, `claude-code-hooks, ${what}: ${hook.stderr}`);
  }
  const broken = spawnSync("sh", ["gate.sh"], { input: "not JSON", encoding: "utf8" });
  assert.equal(broken.status, 2, "claude-code-hooks lets a broken event pass");
  console.log("contract: recipe claude-code-hooks stops");
} else console.log("contract: skipped claude-code-hooks, jq is not there");
