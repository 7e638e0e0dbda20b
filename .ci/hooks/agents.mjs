// Starts the coding agents with the hook as `gate hook --install --write` puts it into
// a clean home, lets
// a stand-in for the model ask for one call after the other, and looks which of
// them left their file behind and what the model was told of the others. To be
// started where nothing but loopback is reachable:
//
//	node agents.mjs FOLDER COUNTERSIGN NODE_MODULES [NODE22]
//
// NODE22 is for Cursor, which is left out without it.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { answer as answerCursor } from './cursor.mjs';
import { answer } from './model.mjs';
import { sessions as all, broken, mcpTools } from './sessions.mjs';

const [top, countersign, modules, node22] = process.argv.slice(2);
const sessions = all.filter(session => (session.agent !== 'cursor' && session.agent !== 'qwen') || node22).filter(session => !process.env.ONLY || process.env.ONLY.split(',').includes(session.agent));
const patience = 120_000; // for one agent; it needs a few seconds on an idle machine
const failures = [];
let calls = 0;

const settingsFile = { claude: '.claude/settings.json', codex: '.codex/hooks.json', cursor: '.cursor/hooks.json', gemini: '.gemini/settings.json', qwen: '.qwen/settings.json', copilot: '.copilot/hooks/countersign.json', opencode: '.config/opencode/plugins/countersign.js' };

// run starts a program and collects what it says; it never outlives its time. It sees a
// user database that names the session's home folder: a guard believes no environment.
function run(argv, { passwd, ...options }) {
  const seen = passwd ? ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', 'mount --bind "$0" /etc/passwd && exec "$@"', passwd, ...argv] : argv;
  return new Promise(resolve => {
    const child = spawn(seen[0], seen.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], ...options, timeout: patience, killSignal: 'SIGKILL' });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', text => {
        said += text;
      });
    child.on('error', error => resolve({ code: -1, said: String(error) }));
    child.on('close', (code, signal) => resolve({ code: code ?? signal, said }));
  });
}

// environment is all that a session's programs are given: nothing of ours.
const environment = (folder, home) => ({
  PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`,
  HOME: home,
  TMPDIR: path.join(folder, 'tmp'),
  LANG: 'C.UTF-8',
  TERM: 'xterm-256color',
  NO_COLOR: '1',
  XDG_CONFIG_HOME: path.join(home, '.config'),
  XDG_DATA_HOME: path.join(home, 'data'),
  XDG_CACHE_HOME: path.join(home, 'cache'),
  XDG_STATE_HOME: path.join(home, 'state'),
});

// Each agent's own way to the stand-in, to the MCP server and to no questions
// asked: what is written and set for it, and how it is started.
const programs = {
  claude({ home, env, args }, base, server) {
    fs.writeFileSync(path.join(home, '../mcp.json'), JSON.stringify({ mcpServers: { db: server } }));
    Object.assign(env, { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: 'none', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1' });
    return [process.execPath, path.join(modules, '@anthropic-ai/claude-code/cli-wrapper.cjs'), '-p', 'go', ...args];
  },
  codex({ home, args }, base, server) {
    const config = `model = "gpt-6-sol"
model_provider = "stand-in"
check_for_update_on_startup = false
analytics.enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "${base}"
wire_api = "responses"
[mcp_servers.db]
command = ${JSON.stringify(server.command)}
args = ${JSON.stringify(server.args)}
`;
    fs.writeFileSync(path.join(home, '.codex/config.toml'), config);
    return [process.execPath, path.join(modules, '@openai/codex/bin/codex.js'), 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...args, 'go'];
  },
  cursor({ env }, base) {
    Object.assign(env, { CURSOR_BACKEND_URL: base, NODE_NO_WARNINGS: '1' });
    return [node22, path.resolve('cursorclient.mjs')];
  },
  gemini({ env, args, settings }, base, server) {
    Object.assign(settings, {
      mcpServers: { db: server },
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
    });
    Object.assign(env, { GOOGLE_GEMINI_BASE_URL: base, GEMINI_API_KEY: 'none' });
    return [process.execPath, path.join(modules, '@google/gemini-cli/bundle/gemini.js'), '-m', 'gemini-2.5-pro', '--approval-mode', 'yolo', ...args, '-p', 'go'];
  },
  qwen({ env, settings }, base, server) {
    Object.assign(settings, { mcpServers: { db: server }, security: { auth: { selectedType: 'openai' } }, general: { enableAutoUpdate: false }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false } });
    Object.assign(env, { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: `${base}/v1`, OPENAI_MODEL: 'none', NODE_NO_WARNINGS: '1' });
    return [node22, path.join(modules, '@qwen-code/qwen-code/cli-entry.js'), '--approval-mode', 'yolo', '-p', 'go'];
  },
  // Without an account: its own provider is the stand-in.
  copilot({ env }, base) {
    Object.assign(env, { COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: `${base}/v1`, COPILOT_PROVIDER_API_KEY: 'none', COPILOT_MODEL: 'gpt-4.1', COPILOT_ALLOW_ALL: 'true' });
    return [path.join(modules, '@github/copilot-linux-x64/copilot'), '--allow-all-tools', '-p', 'go'];
  },
  opencode({ home, env }, base) {
    const config = { model: 'standin/none', small_model: 'standin/none', autoupdate: false, share: 'disabled', provider: { standin: { npm: '@ai-sdk/openai-compatible', name: 'standin', options: { baseURL: `${base}/v1`, apiKey: 'none' }, models: { none: { name: 'none', tool_call: true, limit: { context: 100000, output: 4000 } } } } } };
    fs.writeFileSync(path.join(home, '.config/opencode/opencode.json'), JSON.stringify(config));
    // It looks for packages of plugins; the stand-in has none, which is an answer at once.
    Object.assign(env, { NPM_CONFIG_REGISTRY: `${base}/npm/`, npm_config_fetch_retries: '0', OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' });
    return [path.join(modules, 'opencode-linux-x64/bin/opencode'), 'run', '--print-logs', 'go'];
  },
};

// prepare makes a session's folders, settings and command.
async function prepare(session, base) {
  const folder = path.join(top, `${session.agent} ${session.name}`.replaceAll(' ', '-'));
  const [home, project] = [path.join(folder, 'home'), path.join(folder, 'project')];
  const installed = session.installed ?? session.agent;
  const file = settingsFile[installed];
  for (const made of [path.join(home, file, '..'), project, path.join(folder, 'tmp')]) fs.mkdirSync(made, { recursive: true });
  fs.writeFileSync(path.join(project, '.env'), 'NAME=value\n');
  const passwd = path.join(folder, 'passwd');
  fs.writeFileSync(passwd, `root:x:0:0::${home}:/bin/sh\n`);
  Object.assign(session, { home, project, passwd, env: { ...environment(folder, home), ...session.env } });
  session.steps = JSON.parse(JSON.stringify(session.steps).replaceAll('PROJECT', project).replaceAll('HOME', home));

  const where = session.inProject ? ['--project'] : [];
  const written = await run([countersign, 'gate', 'hook', '--install', installed, '--write', ...where], { env: session.env, cwd: project, passwd });
  if (written.code !== 0) failures.push(`${session.agent}, ${session.name}: --install --write: ${written.said}`);
  session.settings = {};
  const isJSON = file.endsWith('.json');
  if (!session.inProject && isJSON) session.settings = JSON.parse(fs.readFileSync(path.join(home, file), 'utf8'));
  if (session.hooks) session.settings.hooks = session.hooks;
  const server = { command: process.execPath, args: [path.resolve('mcp.mjs'), project, ...mcpTools] };
  session.argv = programs[session.agent](session, base, server);
  if (isJSON) fs.writeFileSync(path.join(home, file), JSON.stringify(session.settings));
}

// judge compares what happened with what must.
function judge(session, { code, said }) {
  const fail = text => failures.push(`${session.agent}, ${session.name}: ${text}`);
  if (session.results.length < session.steps.length) {
    fail(`made ${session.results.length} of ${session.steps.length} calls, exit ${code}\n${said.slice(-2000)}`);
    return;
  }
  session.steps.forEach(({ call, leaves, told }, i) => {
    calls++;
    const [what, result] = [call, session.results[i]].map(value => JSON.stringify(value));
    const ran = leaves !== undefined && fs.existsSync(path.join(session.project, leaves));
    if (told === undefined && !ran) fail(`did not run ${what}: ${result}`);
    if (told !== undefined && ran) fail(`RAN ${what}, which must be stopped: ${result}`);
    if (told && !result.includes(told)) fail(`the model was not told ${told} of ${what}: ${result}`);
  });
  for (const name of session.after ?? []) if (!fs.existsSync(path.join(session.project, name))) fail(`${name} was not called`);
  for (const name of session.never ?? []) if (fs.existsSync(path.join(session.project, name))) fail(`${name} was called`);
}

// watched looks into the guard's own log: the canary of the session's start, and no
// call that ran without a verdict.
async function watched(session) {
  const { said: all } = await run([countersign, 'gate', 'log', '--json', '--last', '0'], { env: session.env, passwd: session.passwd });
  const said = all.split('\n').find(line => line.startsWith('{'));
  const fail = text => failures.push(`${session.agent}, ${session.name}: ${text}: ${said}`);
  const log = JSON.parse(said);
  if (!log.whole) fail('the log of the guard is not whole');
  if (session.agent !== 'copilot' && session.agent !== 'opencode' && !log.lines.some(line => line.decision === 'canary')) fail('no canary at the start of the session');
  if (log.lines.some(line => line.decision === 'unseen')) fail('an alarm for a call that had its verdict');
}

// doctor compares doctor --hook with what the agents did.
async function doctor() {
  const options = session => ({ cwd: session.project, env: session.env, passwd: session.passwd });
  for (const session of sessions.filter(s => s.name === 'installed')) {
    await watched(session);
    const { code, said } = await run([countersign, 'doctor', '--hook', '--agent', session.agent], options(session));
    if (code !== 0 || !said.includes('blocks the canary')) failures.push(`${session.agent}: doctor does not find the installed hook good: ${said}`);
    for (const [name, hook] of Object.entries(broken).filter(([name]) => name !== 'late').filter(([, hook]) => hook[session.agent])) {
      const { said } = await run([countersign, 'doctor', '--hook', '--agent', session.agent, '--', hook.command], options(session));
      if (said.includes('NOT GUARDED') !== (hook[session.agent] === 'runs')) failures.push(`${session.agent}: doctor is wrong about the hook that ${name}: ${said}`);
    }
  }
}

const server = http.createServer((request, response) => {
  const [, index, rest] = request.url.match(/^\/(\d+)(\/[^?]*)/) ?? [];
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', () => {
    const [session, body] = [sessions[index], Buffer.concat(parts)];
    try {
      if (session.agent === 'cursor') answerCursor(session, rest, body, request.headers['content-type'], response);
      else answer(session, rest, JSON.parse(body), response);
    } catch {
      response.writeHead(404).end('{}');
    }
  });
});
server.listen(0, '127.0.0.1', async () => {
  sessions.forEach(session => {
    session.results = [];
  });
  const waiting = [...sessions.entries()].sort(([, a], [, b]) => b.steps.length - a.steps.length);
  await Promise.all(
    Array.from({ length: Math.min(4, os.availableParallelism() + 1) }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const [index, session] = next;
        await prepare(session, `http://127.0.0.1:${server.address().port}/${index}`);
        judge(session, await run(session.argv, { cwd: session.project, env: session.env, passwd: session.passwd }));
      }
    }),
  );
  await doctor();
  for (const failure of failures) console.error(`hooks: ${failure}`);
  if (failures.length === 0) console.log(`hooks: ${calls} calls in ${sessions.length} sessions went as they must`);
  process.exit(failures.length === 0 ? 0 : 1);
});
