// The recipe of the page about hooks over HTTP: every answer but a low 200 stops the tool.
// The recipes with our package are run by .ci/clients.
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
