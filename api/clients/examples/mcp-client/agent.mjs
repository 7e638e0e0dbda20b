// An MCP client whose every tool call needs a decision under the organization's policy:
//
//	COUNTERSIGN_URL=... COUNTERSIGN_TOKEN=svco_... COUNTERSIGN_ORG=org_... COUNTERSIGN_KEYS=jwks.json \
//	COUNTERSIGN_KEY=svck_... node agent.mjs TOOL ARGUMENTS
//
// It calls Countersign's own MCP server. Any other server works in the same way.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Countersign } from "countersign";
import { mcpClient } from "countersign/middleware";

const { COUNTERSIGN_URL, COUNTERSIGN_TOKEN, COUNTERSIGN_ORG, COUNTERSIGN_KEYS, COUNTERSIGN_KEY } = process.env;
const countersign = new Countersign({ url: COUNTERSIGN_URL, token: COUNTERSIGN_TOKEN, orgId: COUNTERSIGN_ORG, keys: JSON.parse(readFileSync(COUNTERSIGN_KEYS, "utf8")) });

const inner = new Client({ name: "example", version: "1.0.0" });
await inner.connect(new StreamableHTTPClientTransport(new URL("/mcp/safety", COUNTERSIGN_URL), { requestInit: { headers: { "X-API-Key": COUNTERSIGN_KEY } } }));
const client = mcpClient(countersign, inner, { serverId: "countersign", declaredRisk: () => "low" });

const [name, args] = process.argv.slice(2);
const result = await client.callTool({ name, arguments: JSON.parse(args) });
console.log(result.isError ? "error" : "ok", result.content[0].text);
await client.close();
