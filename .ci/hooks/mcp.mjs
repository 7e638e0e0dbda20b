// An MCP server on standard input. Every tool leaves a file with its name in the
// folder it is given, which is how one sees that a call went through; approve is
// who answers when Claude Code asks, and says yes.
import fs from 'node:fs';
import readline from 'node:readline';

const [folder, ...names] = process.argv.slice(2);
const methods = {
  initialize: params => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'db', version: '1' } }),
  'tools/list': () => ({ tools: names.map(name => ({ name, description: name, inputSchema: { type: 'object' } })) }),
  'tools/call': ({ name, arguments: given }) => {
    fs.writeFileSync(`${folder}/${name}`, '');
    const text = name === 'approve' ? JSON.stringify({ behavior: 'allow', updatedInput: given.input }) : 'done by the server';
    return { content: [{ type: 'text', text }] };
  },
};
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = methods[method] ? { result: methods[method](params) } : { error: { code: -32601, message: 'no such method' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\n');
}
