// The local agent of Cursor's SDK, in this folder and with the settings it finds.
import { Agent } from '@cursor/sdk';

const agent = await Agent.create({ apiKey: 'none', model: { id: 'none' }, local: { cwd: process.cwd(), settingSources: ['all'] } });
const run = await agent.send('go');
const { status } = await run.wait();
console.log(status);
process.exit(status === 'finished' ? 0 : 1);
