// A stand-in for Cursor's service, as far as the local agent of Cursor's SDK needs
// it: protocol buffers over Connect, written and read by their field numbers. The
// service sends a call, the agent its result, the service the next call.

const varint = n => Buffer.from(n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
const bytes = (no, value) => Buffer.concat([varint(no * 8 + 2), varint(Buffer.byteLength(value)), Buffer.from(value)]);
const message = fields =>
  Buffer.concat(Object.entries(fields).map(([no, value]) => (typeof value === 'number' ? Buffer.concat([varint(no * 8), varint(value)]) : bytes(+no, value))));

// read gives the fields of a message in order, as [number, value].
function read(text) {
  const fields = [];
  let at = 0;
  const number = () => {
    let [n, scale, byte] = [0, 1, 0];
    do {
      byte = text[at++];
      n += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return n;
  };
  while (at < text.length) {
    const tag = number();
    const length = { 1: 8, 2: 0, 5: 4 }[tag & 7];
    if (length === undefined) {
      fields.push([tag >> 3, number()]);
      continue;
    }
    const end = length || number();
    fields.push([tag >> 3, text.subarray(at, (at += end))]);
  }
  return fields;
}

const envelope = (flags, text) => {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
};

// calls are the fields of ExecServerMessage and what stands in them.
const calls = {
  shell: (session, { command }, id) => ({ 14: message({ 1: command, 2: session.project, 3: 5000, 4: id }) }),
  write: (session, { path, text }, id) => ({ 3: message({ 1: path, 2: text, 3: id }) }),
  read: (session, { path }, id) => ({ 7: message({ 1: path, 2: id }) }),
  mcp: (session, { server, tool, args }, id) => {
    const given = Object.entries(args).map(([name, value]) => bytes(2, message({ 1: name, 2: message({ 3: value }) })));
    return { 11: Buffer.concat([message({ 1: `${server}-${tool}`, 3: id, 4: server, 5: tool, 9: server }), ...given]) };
  },
};

// next sends the next call, or the end of the turn.
function next(session) {
  const n = session.results.length;
  const step = session.steps[n];
  if (step) {
    const call = calls[step.call.tool](session, step.call.input, `tool_${n}`);
    session.stream.write(envelope(0, message({ 2: message({ 1: n + 1, 15: `call_${n}`, ...call }) })));
    return;
  }
  session.stream.write(envelope(0, message({ 1: message({ 14: '' }) })));
  session.stream.end(envelope(2, Buffer.from('{}')));
}

// told takes a message of the agent: its request to run, or (a part of) a result.
// A shell's result comes as a stream that ends with its exit or its refusal.
function told(session, text) {
  for (const [no, value] of read(text)) {
    if (no === 1) next(session);
    if (no !== 2) continue;
    for (const [kind, result] of read(value)) {
      const parts = kind === 14 ? read(result).map(([part]) => part) : [];
      if (kind === 3 || kind === 7 || kind === 11 || parts.some(part => part === 3 || part >= 5)) {
        session.results.push(result.toString());
        next(session);
      }
    }
  }
}

// answer answers one request of a session.
export function answer(session, path, body, contentType, response) {
  const reply = (type, text) => response.writeHead(200, { 'content-type': type }).end(text);
  const method = path.slice(path.lastIndexOf('/') + 1);
  switch (method) {
    case 'exchange_user_api_key':
      return reply('application/json', JSON.stringify({ accessToken: `none.${btoa('{"exp":4102444800}')}.none`, refreshToken: 'none' }));
    case 'models':
      return reply('application/json', '{"items":[{"id":"none","displayName":"none"}]}');
    case 'RunSSE':
      session.stream = response.writeHead(200, { 'content-type': 'application/connect+proto' });
      response.flushHeaders();
      return session.waiting?.forEach(text => told(session, text));
    case 'BidiAppend': {
      const fields = Object.fromEntries(read(body));
      const text = fields[4]?.length ? fields[4] : Buffer.from(fields[1].toString(), 'hex');
      if (session.stream) told(session, text);
      else (session.waiting ??= []).push(text);
      return reply('application/proto');
    }
    default: // what is asked about the account: nothing is set
      return reply(contentType ?? 'application/json', contentType?.includes('json') ? '{}' : undefined);
  }
}
