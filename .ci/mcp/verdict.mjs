// Reads what the conformance suite found. It fails what it cannot try, since our
// server has none of its diagnostic tools; that is no failure of ours and is said.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const found = readdirSync(process.argv[2], { recursive: true }).filter(name => name.endsWith('checks.json'));
const checks = found.flatMap(name => JSON.parse(readFileSync(join(process.argv[2], name), 'utf8')));
const failed = checks.filter(c => c.status === 'FAILURE' || c.status === 'WARNING');
const untried = failed.filter(c => c.details?.untestable === true);
const bad = failed.filter(c => !untried.includes(c));
const passed = checks.filter(c => c.status === 'SUCCESS').length;
console.log(`mcp: conformance ${process.argv[2].split('/').pop()}: ${passed} passed, ${bad.length} failed, ${untried.length} not testable here`);
for (const c of bad) console.error(`  ${c.id}: ${c.errorMessage}`);
process.exit(passed > 0 && bad.length === 0 ? 0 : 1);
