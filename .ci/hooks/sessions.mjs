// What the agents are made to do and what must come of it. PROJECT and HOME stand
// for a session's folders.

// A step is a call of the model, the file it leaves if it runs, and either
// nothing (it must run) or what the model must be told instead of its result.
const runs = (tool, input, leaves) => ({ call: { tool, input }, leaves });
const stops = (tool, input, leaves, told) => ({ call: { tool, input }, leaves, told });
// mcp is a call of our MCP server's tool in each agent's own words.
const mcp = {
  claude: (name, input = {}) => ({ tool: `mcp__db__${name}`, input }),
  codex: (name, input = {}) => ({ tool: name, namespace: 'mcp__db', input }),
  gemini: (name, input = {}) => ({ tool: `mcp_db_${name}`, input }),
};
const mcpSteps = agent => [
  { call: mcp[agent]('get_note'), leaves: 'get_note' },
  { call: mcp[agent]('execute_sql', { sql: 'drop table users' }), leaves: 'execute_sql', told: '(sql.drop.table)' },
];

// broken are hooks that do not answer as ours does, and what becomes of a call
// in each agent; closed where the entry says onFailure or failClosed. README and
// doctor --hook say the same.
export const broken = {
  gone: { command: '/nonexistent/countersign gate hook', claude: 'runs', codex: 'runs', cursor: 'runs', gemini: 'stops', closed: { claude: 'stops', cursor: 'stops' } },
  refuses: { command: 'echo why >&2; exit 2', claude: 'stops', codex: 'stops', cursor: 'stops', gemini: 'stops', closed: { claude: 'stops', cursor: 'stops' } },
  silent: { command: 'exit 2', claude: 'stops', codex: 'runs', cursor: 'stops', gemini: 'runs', closed: { claude: 'stops', cursor: 'stops' } },
  fails: { command: 'exit 1', claude: 'runs', codex: 'runs', cursor: 'runs', gemini: 'runs', closed: { claude: 'stops', cursor: 'stops' } },
  babbles: { command: 'echo garbage', claude: 'runs', codex: 'runs', cursor: 'stops', gemini: 'runs', closed: { claude: 'runs', cursor: 'stops' } },
  nothing: { command: 'true', claude: 'runs', codex: 'runs', cursor: 'runs', gemini: 'runs', closed: { claude: 'runs', cursor: 'stops' } },
  late: { command: 'sleep 30', claude: 'runs', codex: 'runs', cursor: 'runs', gemini: 'runs', closed: { claude: 'stops', cursor: 'stops' } },
};
const brokenSteps = (agent, call = mcp[agent]) => [
  ...Object.entries(broken).map(([name, hook]) => ({ call: call(name), leaves: name, told: hook[agent] === 'stops' ? '' : undefined })),
  ...Object.entries(broken)
    .filter(([, hook]) => hook.closed[agent])
    .map(([name, hook]) => ({ call: call(`closed_${name}`), leaves: `closed_${name}`, told: hook.closed[agent] === 'stops' ? '' : undefined })),
];
// patience is what a hook is given, in seconds: next to nothing where it is late
// anyway, enough for a busy machine elsewhere.
const patience = name => (name === 'late' ? 1 : 10);
// brokenHooks gives the server's tools the hooks of their names.
const brokenHooks = (unit, matcher, more = {}) =>
  Object.entries(broken).map(([name, { command }]) => ({ matcher: matcher(name), hooks: [{ name, type: 'command', command, timeout: patience(name) * unit, ...more }] }));

const bash = command => ({ command, description: 'x' });
const claudeFlags = ['--allowedTools', 'Bash Write Edit Read Monitor mcp__db', '--mcp-config', '../mcp.json', '--strict-mcp-config'];
const asking = mode => [...claudeFlags, '--permission-prompt-tool', 'mcp__db__approve', '--permission-mode', mode];
const critical = 'mkfs.ext4 /dev/countersign-canary'; // there is no such device
const shell = command => ({ tool: 'shell', input: { command } });
const high = 'touch high; git reset --hard';
// A session is one run of an agent with the hook as --install --write puts it into
// the home folder's settings, or the project's, or with other hooks.
export const sessions = [
  {
    agent: 'claude',
    name: 'installed',
    args: claudeFlags,
    steps: [
      runs('Bash', bash('touch low'), 'low'),
      stops('Bash', bash(`touch critical; ${critical}`), 'critical', '(shell.disk.mkfs)'),
      stops('Bash', bash(high), 'high', '(git.reset.hard)'),
      stops('Monitor', { ...bash(`touch watched; ${critical}`), timeout_ms: 2000 }, 'watched', '(shell.disk.mkfs)'),
      runs('Write', { file_path: 'PROJECT/plain', content: '' }, 'plain'),
      stops('Read', { file_path: 'PROJECT/.env' }, undefined, '(secret.read-file)'),
      ...mcpSteps('claude'),
    ],
  },
  // High risk is asked about, and what was approved runs.
  { agent: 'claude', name: 'asking', args: asking('default'), steps: [runs('Bash', bash(high), 'high')], after: ['approve'] },
  { agent: 'claude', name: 'asking in auto mode', args: asking('auto'), steps: [runs('Bash', bash(high), 'high')], after: ['approve'] },
  // Where nobody wants to be asked it is denied, even if somebody could be.
  {
    agent: 'claude',
    name: 'not asking',
    args: asking('dontAsk'),
    never: ['approve'],
    steps: [
      stops('Bash', bash(high), 'high', '(git.reset.hard)'),
      stops('Write', { file_path: 'PROJECT/.claude/settings.json', content: '{}' }, '.claude/settings.json', '(hook.guard-settings)'),
      stops('Bash', bash('echo {} >HOME/.claude/settings.json; touch switched'), 'switched', '(hook.guard-settings)'),
    ],
  },
  { agent: 'claude', name: 'in the project', inProject: true, args: claudeFlags, steps: [stops('Bash', bash(`touch critical; ${critical}`), 'critical', '(shell.disk.mkfs)')] },
  {
    agent: 'claude',
    name: 'broken hooks',
    args: claudeFlags,
    hooks: { PreToolUse: [...brokenHooks(1, name => `mcp__db__${name}`), ...brokenHooks(1, name => `mcp__db__closed_${name}`, { onFailure: 'block' })] },
    steps: brokenSteps('claude'),
  },

  // Codex, which new models drive through JavaScript.
  {
    agent: 'codex',
    name: 'installed',
    args: ['--dangerously-bypass-hook-trust'],
    steps: [
      runs('exec_command', { cmd: 'touch low' }, 'low'),
      stops('exec_command', { cmd: `touch critical; ${critical}` }, 'critical', '(shell.disk.mkfs)'),
      stops('exec_command', { cmd: high }, 'high', '(git.reset.hard)'),
      stops('exec_command', { cmd: 'sh', tty: true, yield_time_ms: 250 }, undefined, '(hook.unseen-input)'),
      runs('exec', "text(await tools.exec_command({cmd: 'touch nested'}))", 'nested'),
      stops('exec', `text(await tools.exec_command({cmd: 'touch deep; ${critical}'}))`, 'deep', '(shell.disk.mkfs)'),
      runs('apply_patch', '*** Begin Patch\n*** Add File: plain\n+x\n*** End Patch\n', 'plain'),
      stops('apply_patch', '*** Begin Patch\n*** Add File: .codex/hooks.json\n+{}\n*** End Patch\n', '.codex/hooks.json', '(hook.guard-settings)'),
      stops('exec_command', { cmd: 'echo {} >.codex/hooks.json; touch switched' }, 'switched', '(hook.guard-settings)'),
      ...mcpSteps('codex'),
    ],
  },
  // The hook is skipped without a word until it is trusted.
  { agent: 'codex', name: 'not trusted', args: [], steps: [runs('exec_command', { cmd: high }, 'high')] },
  // Nor does it look at a project's hooks before it trusts the project.
  {
    agent: 'codex',
    name: 'in the project',
    inProject: true,
    args: ['--dangerously-bypass-hook-trust', '--trust'],
    steps: [stops('exec_command', { cmd: `touch critical; ${critical}` }, 'critical', '(shell.disk.mkfs)')],
  },
  { agent: 'codex', name: 'in a project not trusted', inProject: true, args: ['--dangerously-bypass-hook-trust'], steps: [runs('exec_command', { cmd: high }, 'high')] },
  {
    agent: 'codex',
    name: 'broken hooks',
    args: ['--dangerously-bypass-hook-trust'],
    hooks: { PreToolUse: brokenHooks(1, name => `^mcp__db__${name}$`) },
    steps: brokenSteps('codex'),
  },

  // Cursor, the local agent of its SDK.
  {
    agent: 'cursor',
    name: 'installed',
    steps: [
      { call: shell('touch low'), leaves: 'low' },
      { call: shell(`touch critical; ${critical}`), leaves: 'critical', told: '(shell.disk.mkfs)' },
      { call: shell(high), leaves: 'high', told: '(git.reset.hard)' },
      runs('write', { path: 'PROJECT/plain', text: 'x' }, 'plain'),
      stops('write', { path: 'PROJECT/.cursor/hooks.json', text: '{}' }, '.cursor/hooks.json', '(hook.guard-settings)'),
      stops('read', { path: 'PROJECT/.env' }, undefined, '(secret.read-file)'),
      stops('mcp', { server: 'db', tool: 'execute_sql', args: { sql: 'drop table users' } }, 'execute_sql', '(sql.drop.table)'),
    ],
  },
  { agent: 'cursor', name: 'in the project', inProject: true, steps: [{ call: shell(`touch critical; ${critical}`), leaves: 'critical', told: '(shell.disk.mkfs)' }] },
  // It starts the hooks of Claude Code's settings, too.
  {
    agent: 'cursor',
    name: 'with the settings of claude',
    installed: 'claude',
    steps: [{ call: shell(`touch critical; ${critical}`), leaves: 'critical', told: '(shell.disk.mkfs)' }],
  },
  {
    agent: 'cursor',
    name: 'broken hooks',
    hooks: {
      beforeShellExecution: Object.entries(broken).flatMap(([name, { command }]) => [
        { command, timeout: patience(name), matcher: `touch ${name}$` },
        { command, timeout: patience(name), matcher: `touch closed_${name}$`, failClosed: true },
      ]),
    },
    steps: brokenSteps('cursor', name => shell(`touch ${name}`)),
  },

  // Gemini CLI.
  {
    agent: 'gemini',
    name: 'installed',
    args: ['--skip-trust'],
    steps: [
      runs('run_shell_command', { command: 'touch low' }, 'low'),
      stops('run_shell_command', { command: `touch critical; ${critical}` }, 'critical', '(shell.disk.mkfs)'),
      stops('run_shell_command', { command: high }, 'high', '(git.reset.hard)'),
      runs('write_file', { file_path: 'PROJECT/plain', content: 'x' }, 'plain'),
      stops('write_file', { file_path: 'PROJECT/.gemini/settings.json', content: '{}' }, '.gemini/settings.json', '(hook.guard-settings)'),
      stops('run_shell_command', { command: 'echo {} >.gemini/settings.json; touch switched' }, 'switched', '(hook.guard-settings)'),
      ...mcpSteps('gemini'),
    ],
  },
  // A project's hooks run where the folder is trusted, not where trust is skipped.
  {
    agent: 'gemini',
    name: 'in the project',
    inProject: true,
    args: [],
    env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    steps: [stops('run_shell_command', { command: `touch critical; ${critical}` }, 'critical', '(shell.disk.mkfs)')],
  },
  { agent: 'gemini', name: 'in a project not trusted', inProject: true, args: ['--skip-trust'], steps: [runs('run_shell_command', { command: high }, 'high')] },
  // Qwen Code, OpenCode by our plugin, and GitHub Copilot CLI with a provider of its own.
  {
    agent: 'qwen',
    name: 'installed',
    steps: [
      runs('run_shell_command', { command: 'touch low', is_background: false }, 'low'),
      stops('run_shell_command', { command: `touch critical; ${critical}`, is_background: false }, 'critical', '(shell.disk.mkfs)'),
      stops('run_shell_command', { command: high, is_background: false }, 'high', '(git.reset.hard)'),
      runs('write_file', { file_path: 'PROJECT/plain', content: 'x' }, 'plain'),
      stops('read_file', { file_path: 'PROJECT/.env', absolute_path: 'PROJECT/.env' }, undefined, '(secret.read-file)'),
    ],
  },
  {
    agent: 'opencode',
    name: 'installed',
    steps: [
      runs('bash', { command: 'touch low', description: 'x' }, 'low'),
      stops('bash', { command: `touch critical; ${critical}`, description: 'x' }, 'critical', '(shell.disk.mkfs)'),
      stops('bash', { command: high, description: 'x' }, 'high', '(git.reset.hard)'),
      runs('write', { filePath: 'PROJECT/plain', content: 'x' }, 'plain'),
      stops('read', { filePath: 'PROJECT/.env' }, undefined, '(secret.read-file)'),
    ],
  },
  {
    agent: 'copilot',
    name: 'installed',
    steps: [
      runs('bash', { command: 'touch low', description: 'x' }, 'low'),
      stops('bash', { command: `touch critical; ${critical}`, description: 'x' }, 'critical', '(shell.disk.mkfs)'),
      stops('bash', { command: high, description: 'x' }, 'high', '(git.reset.hard)'),
      runs('create', { path: 'PROJECT/plain', file_text: 'x' }, 'plain'),
      stops('view', { path: 'PROJECT/.env' }, undefined, '(secret.read-file)'),
    ],
  },
  { agent: 'gemini', name: 'broken hooks', args: ['--skip-trust'], hooks: { BeforeTool: brokenHooks(1000, name => `mcp_db_${name}`) }, steps: brokenSteps('gemini') },
];

// mcpTools are the tools of the MCP server that every session has.
export const mcpTools = ['get_note', 'execute_sql', 'approve', ...Object.keys(broken).flatMap(name => [name, `closed_${name}`])];
