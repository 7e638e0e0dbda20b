// Both generations of the TypeScript SDK as clients, unmodified: every service by
// its example (the SDK holds the answer to the tool's output schema), what a tool
// says to whoever has not paid and to whoever pays, the way from a 401 to an access
// token, and what else there is to read.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client as V1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as V1Transport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ClientCredentialsProvider as V1Credentials } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client as V2, StreamableHTTPClientTransport as V2Transport, ClientCredentialsProvider as V2Credentials } from '@modelcontextprotocol/client';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';

const [base, keyOne, keyTwo] = process.argv.slice(2);
const endpoint = new URL(base + '/mcp');
const openapi = await (await fetch(base + '/openapi.json')).json();
const resolve = schema => schema.$ref ? resolve(schema.$ref.slice(2).split('/').reduce((at, name) => at[name], openapi)) : schema;
const priced = Object.values(openapi.paths).flatMap(Object.values).filter(op => op['x-payment-info']?.price?.mode === 'fixed');
assert.ok(priced.length >= 19, `${priced.length} priced operations`);

async function v1(headers, authProvider) {
  const client = new V1({ name: 'acceptance', version: '1' });
  await client.connect(new V1Transport(endpoint, { requestInit: { headers }, authProvider }));
  return client;
}
const v2 = mode => async (headers, authProvider) => {
  const client = new V2({ name: 'acceptance', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new V2Transport(endpoint, { requestInit: { headers }, authProvider }));
  return client;
};
const kinds = { 'sdk 1': v1, 'client 2, legacy': v2('legacy'), 'client 2, 2026-07-28': v2({ pin: '2026-07-28' }), 'client 2, auto': v2('auto') };

// every service, by the example its OpenAPI operation gives
async function services(connect, key) {
  const client = await connect({ 'X-API-Key': key });
  const { tools } = await client.listTools();
  for (const op of priced) {
    const tool = tools.find(t => t.name === op.operationId);
    assert.ok(tool, `${op.operationId} is no tool`);
    assert.equal(tool._meta['x402/price'].usd, op['x-payment-info'].price.amount);
    const body = op.requestBody.content['application/json'];
    // A tool's schema is its operation's without what is too long for a list: the
    // members are the same, and the same ones are needed. The idempotency key, over HTTP
    // a header of most services, is a member of every tool.
    const schema = resolve(body.schema);
    assert.deepEqual(Object.keys(tool.inputSchema.properties ?? {}).sort(), [...new Set([...Object.keys(schema.properties ?? {}), 'idempotencyKey'])].sort());
    assert.deepEqual((tool.inputSchema.required ?? []).toSorted(), (schema.required ?? []).toSorted());
    const result = await client.callTool({ name: tool.name, arguments: body.example });
    assert.ok(!result.isError, `${tool.name}: ${JSON.stringify(result.content)}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  }
  await client.close();
  return priced.length;
}

// free: what may be read and asked without a credential
async function free(connect) {
  const client = await connect({});
  for (const { uri } of (await client.listResources()).resources) {
    const { contents } = await client.readResource({ uri });
    JSON.parse(contents[0].text);
  }
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 7);
  await assert.rejects(client.readResource({ uri: 'countersign://decisions/asd_01JD3Z8W5T0000000000000000' }), e => e.code === -32602);
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }));
  const { prompts } = await client.listPrompts();
  assert.equal(prompts.length, 3);
  const prompt = await client.getPrompt({ name: 'preflight_command', arguments: { command: 'rm -rf /' } });
  assert.match(prompt.messages[0].content.text, /rm -rf \//);
  const bad = await client.callTool({ name: 'get_action_safety_workflow_status', arguments: { workflowId: 'asw_00000000-0000-4000-8000-000000000000' } });
  assert.ok(bad.isError && bad.structuredContent === undefined);
  await client.close();
}

for (const [name, connect] of Object.entries(kinds)) {
  const tried = await services(connect, name.startsWith('sdk') || name.endsWith('legacy') ? keyOne : keyTwo);
  await free(connect);
  console.log(`mcp: ${name}: ${tried} services, resources and prompts`);
}

// A client whose access token has ended finds its way from the 401 to a new one:
// the metadata of resource and server, client_credentials, the call again.
const registered = await (await fetch(base + '/api/auth/register', {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ client_name: 'acceptance' }),
})).json();
for (const [name, connect] of Object.entries(kinds)) {
  const Provider = name.startsWith('sdk') ? V1Credentials : V2Credentials;
  const provider = new Provider({ clientId: registered.client_id, clientSecret: registered.client_secret, expectedIssuer: base });
  provider.saveTokens({ access_token: 'ended.ended.ended', token_type: 'Bearer' });
  const client = await connect({}, provider);
  assert.ok((await client.listTools()).tools.length >= priced.length);
  assert.notEqual(provider.tokens().access_token, 'ended.ended.ended');
  assert.match(provider.tokens().scope, /catalog:read/);
  await client.close();
  console.log(`mcp: ${name}: from a 401 to a new access token`);
}

// Unpaid, a tool names its price in a form the client accepts; paid, it answers
// and says how the payment ended; paid again, it answers the same, over REST too;
// and a payment made for one call is none for another.
const account = privateKeyToAccount(generatePrivateKey());
async function sign(required) {
  const accepted = required.accepts[0];
  const authorization = {
    from: account.address, to: accepted.payTo, value: accepted.amount, validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + accepted.maxTimeoutSeconds), nonce: '0x' + randomBytes(32).toString('hex'),
  };
  const number = type => name => ({ name, type });
  const signature = await account.signTypedData({
    domain: { name: accepted.extra.name, version: accepted.extra.version, chainId: Number(accepted.network.split(':')[1]), verifyingContract: accepted.asset },
    primaryType: 'TransferWithAuthorization',
    types: { TransferWithAuthorization: [...['from', 'to'].map(number('address')), ...['value', 'validAfter', 'validBefore'].map(number('uint256')), number('bytes32')('nonce')] },
    message: { ...authorization, value: BigInt(authorization.value), validAfter: 0n, validBefore: BigInt(authorization.validBefore) },
  });
  return { x402Version: 2, accepted, resource: required.resource, extensions: required.extensions, payload: { signature, authorization } };
}
for (const [name, connect] of Object.entries(kinds)) {
  const client = await connect({});
  await client.listTools(); // from here on the client holds answers to their schemas
  const call = (command, payment) => client.callTool({ name: 'action_safety_quick_gate', arguments: { command }, ...(payment && { _meta: { 'x402/payment': payment } }) });
  const unpaid = await call('git push --force origin main');
  assert.ok(unpaid.isError && unpaid.structuredContent.x402Version === 2 && unpaid.structuredContent.accepts[0].amount === '10000');
  assert.equal(unpaid.structuredContent.resource.url, 'mcp://tool/action_safety_quick_gate');
  assert.equal(unpaid.structuredContent.extensions?.bazaar, undefined);
  assert.deepEqual(JSON.parse(unpaid.content[0].text), unpaid.structuredContent);
  const payment = await sign(unpaid.structuredContent);
  const paid = await call('git push --force origin main', payment);
  assert.ok(!paid.isError, JSON.stringify(paid));
  assert.equal(paid.structuredContent.risk, 'critical');
  assert.ok(paid._meta['x402/payment-response'].success);
  const again = await call('git push --force origin main', payment);
  assert.deepEqual([again.structuredContent, again._meta['x402/payment-response']], [paid.structuredContent, paid._meta['x402/payment-response']]);
  const overREST = await fetch(base + '/api/agent-services/action-safety/quick', {
    method: 'POST', body: JSON.stringify({ command: 'git push --force origin main' }),
    headers: { 'Content-Type': 'application/json', 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify(payment)).toString('base64') },
  });
  assert.equal(overREST.status, 200);
  assert.deepEqual(await overREST.json(), paid.structuredContent);
  const other = await call('ls', payment);
  assert.ok(other.isError && other.structuredContent === undefined && /another request/.test(other.content[0].text), JSON.stringify(other));
  await client.close();
  console.log(`mcp: ${name}: unpaid, paid, paid again, and for another call`);
}
