// A stand-in for the model: it answers a request that holds the results of n
// calls with the n-th call of its session, or with "done". Each of the three
// protocols is spoken as far as an agent needs it to go on, in one piece.

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

// anthropic is the Messages API as Claude Code uses it.
const anthropic = {
  isTurn: (path, body) => path.endsWith('/v1/messages') && body.tools?.some(t => t.name === 'Bash'),
  results: body =>
    body.messages
      .flatMap(m => (Array.isArray(m.content) ? m.content : []))
      .filter(c => c.type === 'tool_result')
      .map(c => c.content),
  events(call, n) {
    const [block, delta] = call
      ? [
          { type: 'tool_use', id: `toolu_${n}`, name: call.tool, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(call.input) },
        ]
      : [
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'done' },
        ];
    return [
      { type: 'message_start', message: { id: `msg_${n}`, type: 'message', role: 'assistant', model: 'none', content: [], stop_reason: null, stop_sequence: null, usage } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
  },
};

// responses is the Responses API as Codex uses it.
const responses = {
  isTurn: path => path.endsWith('/responses'),
  results: body => body.input.filter(i => /^call_\d+$/.test(i.call_id) && i.type.endsWith('_call_output')).map(i => i.output),
  events(call, n) {
    let item = { type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done', annotations: [] }] };
    if (typeof call?.input === 'string') {
      item = { type: 'custom_tool_call', id: `ctc_${n}`, call_id: `call_${n}`, name: call.tool, input: call.input, status: 'completed' };
    } else if (call) {
      item = { type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name: call.tool, namespace: call.namespace, arguments: JSON.stringify(call.input), status: 'completed' };
    }
    const response = { id: `resp_${n}`, object: 'response', status: 'completed', output: [item], usage };
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response },
    ];
  },
};

// generate is streamGenerateContent as Gemini CLI uses it.
const generate = {
  isTurn: (path, body) => path.endsWith(':streamGenerateContent') && body.tools,
  results: body =>
    body.contents
      .flatMap(c => c.parts)
      .filter(p => p.functionResponse)
      .map(p => p.functionResponse.response),
  events: call => [
    {
      candidates: [{ index: 0, finishReason: 'STOP', content: { role: 'model', parts: [call ? { functionCall: { name: call.tool, args: call.input } } : { text: 'done' }] } }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    },
  ],
};

// completions is the Chat Completions API as Qwen Code, GitHub Copilot CLI and OpenCode use it.
const completions = {
  isTurn: (path, body) => path.endsWith('/chat/completions') && body.tools?.length > 0,
  results: body => body.messages.filter(m => m.role === 'tool').map(m => m.content),
  events(call, n) {
    const common = { id: `chat_${n}`, object: 'chat.completion.chunk', created: 1, model: 'none' };
    const delta = call ? { role: 'assistant', content: null, tool_calls: [{ index: 0, id: `call_${n}`, type: 'function', function: { name: call.tool, arguments: JSON.stringify(call.input) } }] } : { role: 'assistant', content: 'done' };
    return [
      { ...common, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...common, choices: [{ index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
    ];
  },
  end: 'data: [DONE]\n\n',
};

const protocols = { claude: anthropic, codex: responses, gemini: generate, qwen: completions, copilot: completions, opencode: completions };

// answer answers one request of a session and keeps the results it holds.
export function answer(session, path, body, response) {
  const protocol = protocols[session.agent];
  let call,
    n = 0;
  if (protocol.isTurn(path, body)) {
    const results = protocol.results(body);
    if (results.length >= session.results.length) session.results = results;
    n = results.length;
    call = session.steps[n]?.call;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of protocol.events(call, n)) {
    response.write((event.type ? `event: ${event.type}\n` : '') + `data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(protocol.end);
}
