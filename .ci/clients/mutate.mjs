// Takes each check out of each client, one at a time, and shows that the conformance cases
// fail without it:
//
//	node mutate.mjs TOP WORK PLAY
//
// TOP is the repository, WORK a folder with the compiled TypeScript package in typescript,
// PLAY the address of a server of the cases. A check is a line that ends in "check: NAME":
// the condition of an if, which becomes false, or a statement, which becomes nothing.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [top, work, play] = process.argv.slice(2);
const env = { ...process.env, COUNTERSIGN_PLAY: play, PYTHONDONTWRITEBYTECODE: "1", COUNTERSIGN_BAIL: "1" };

const clients = {
  // All mutants of Go are compiled as one program, which the environment tells which check
  // to leave out.
  Go: {
    folder: join(top, "api/client"), files: /^(?!.*_test).*\.go$/, work: join(work, "go"),
    without: (line) => line.replace(/^(\s*(?:} else )?if )(.*; )?(.*)( \{ \/\/ check: (.*))$/, "$1$2!without(\"$5\") && ($3)$4"),
    removed: (line) => line.replace(/^(.*) \/\/ check: (.*)$/, "if !without(\"$2\") { $1 }"),
    async prepare(mutants) {
      mkdirSync(this.work);
      const added = 'package client\n\nimport "os"\n\nfunc without(check string) bool { return os.Getenv("MUTANT") == check }\n';
      const replaced = { [join(this.folder, "without.go")]: added };
      for (const { file, line, changed } of mutants) {
        const path = join(this.folder, file);
        const lines = (replaced[path] ?? readFileSync(path, "utf8")).split("\n");
        lines[line] = changed;
        replaced[path] = lines.join("\n");
      }
      const overlay = { Replace: {} };
      for (const [path, text] of Object.entries(replaced)) {
        overlay.Replace[path] = join(this.work, basename(path));
        writeFileSync(overlay.Replace[path], text);
      }
      writeFileSync(join(this.work, "overlay.json"), JSON.stringify(overlay));
      if ((await run("go", ["test", "-overlay", join(this.work, "overlay.json"), "-c", "-o", join(this.work, "test"), "./api/client"], { cwd: top, env })) !== 0) throw new Error("the mutants of Go do not compile");
      if (await this.fails(undefined, { name: "none" })) throw new Error("Go fails with every check in its place");
    },
    async fails(_, { name }) {
      return (await run(join(this.work, "test"), [], { cwd: this.folder, env: { ...env, MUTANT: name } })) !== 0;
    },
  },
  TypeScript: {
    folder: join(work, "typescript/dist"), files: /\.js$/,
    without: (line) => line.replace(/^(\s*if )\((.*)\)( \{ \/\/ check: .*)$/, "$1(false && ($2))$3"),
    removed: () => "",
    async fails(folder) {
      return (await run("node", ["--test", ...readdirSync(join(work, "typescript/test")).map((file) => join(work, "typescript/test", file))], { env: { ...env, COUNTERSIGN_DIST: "file://" + folder } })) !== 0;
    },
  },
  Python: {
    folder: join(top, "api/clients/python/countersign"), files: /\.py$/,
    without: (line) => line.replace(/^(\s*if )(.*)(:  # check: .*)$/, "$1False and ($2)$3"),
    removed: (line) => line.replace(/\S.*/, "pass"),
    async fails(folder) {
      return (await run("python3", ["-m", "unittest", "discover", "-s", join(top, "api/clients/python/tests")], { env: { ...env, PYTHONPATH: join(folder, "..") } })) !== 0;
    },
  },
};

// run gives the exit code; a mutant that hangs has failed.
function run(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: "ignore", timeout: 300_000, killSignal: "SIGKILL" });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

const mutants = [];
for (const [language, client] of Object.entries(clients)) {
  for (const file of readdirSync(client.folder).filter((name) => client.files.test(name))) {
    const lines = readFileSync(join(client.folder, file), "utf8").split("\n");
    lines.forEach((line, i) => {
      const name = /check: ([a-z-]+)$/.exec(line)?.[1];
      if (!name) return;
      let changed = client.without(line);
      if (changed === line) changed = client.removed(line);
      mutants.push({ language, client, file, name, line: i, changed, text: [...lines.slice(0, i), changed, ...lines.slice(i + 1)].join("\n") });
    });
  }
}
const count = (language) => mutants.filter((m) => m.language === language).length;
for (const language of Object.keys(clients)) if (count(language) < 30) throw new Error(`${language} has only ${count(language)} checks`);

await clients.Go.prepare(mutants.filter((m) => m.language === "Go"));

let next = 0, wrong = 0;
async function worker(number) {
  while (next < mutants.length) {
    const mutant = mutants[next++];
    const { language, client, file, name, text } = mutant;
    const folder = join(work, `mutant-${number}`, language === "Python" ? "countersign" : language);
    if (language !== "Go") {
      cpSync(client.folder, folder, { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    if (await client.fails(folder, mutant)) continue;
    wrong++;
    console.error(`clients: ${language}, ${file}, check ${name}: the cases pass without it`);
  }
}
await Promise.all([worker(1), worker(2)]);
console.log(`clients: each of ${mutants.length} checks was taken out (${Object.keys(clients).map((l) => `${l} ${count(l)}`).join(", ")}); the cases found ${mutants.length - wrong}`);
process.exitCode = wrong === 0 ? 0 : 1;
