// The documents of a running service, read by programs we did not write.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { parseFeed } from "feedsmith";
import robotsParser from "robots-parser";
import RSSParser from "rss-parser";

const base = process.argv[2], key = process.argv[3];
const get = async (path, accept) => {
  const answer = await fetch(base + path, { headers: accept ? { Accept: accept } : {} });
  assert.equal(answer.status, 200, `${path} answers ${answer.status}`);
  return answer;
};
const text = async (path) => (await get(path)).text();
const done = (what) => console.log(`contract: ${what}`);

// The generators and linters behind this read the whole contract, indexer.mjs the
// one for agents, which is part of it.
const openapi = await (await get("/openapi-full.json")).json();
writeFileSync("openapi.json", JSON.stringify(openapi));
await SwaggerParser.validate(structuredClone(openapi));
await SwaggerParser.validate(await (await get("/openapi.json")).json());
done("swagger-parser validates both OpenAPI documents");

// Every request example is valid, is answered, and the answer is as published.
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
addFormats(ajv);
ajv.addSchema(openapi, "openapi.json");
const escape = (part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
let answered = 0;
for (const [path, item] of Object.entries(openapi.paths)) {
  const operation = item.post;
  if (!operation?.["x-payment-info"]) continue;
  const schema = (...parts) => ajv.getSchema(`openapi.json#/paths/${escape(path)}/post/${parts.map(escape).join("/")}/content/application~1json/schema`);
  const example = operation.requestBody.content["application/json"].example;
  const request = schema("requestBody");
  assert.ok(request(example), `${path}: ${JSON.stringify(request.errors)}`);
  const answer = await fetch(base + path, { method: "POST", headers: { "Content-Type": "application/json", "X-API-Key": key }, body: JSON.stringify(example) });
  const body = await answer.json();
  assert.equal(answer.status, 200, `${path}: ${JSON.stringify(body)}`);
  const response = schema("responses", "200");
  assert.ok(response(body), `${path}: ${JSON.stringify(response.errors)}`);
  const unpaid = await fetch(base + path, { method: "POST" });
  const demand = await unpaid.json();
  assert.equal(unpaid.status, 402);
  const demanded = schema("responses", "402");
  assert.ok(demanded(demand), `${path} 402: ${JSON.stringify(demanded.errors)}`);
  const { info, schema: bazaar } = demand.extensions.bazaar;
  assert.ok(info.output, `${path}: the listing names no output`);
  const listed = new Ajv2020({ strict: false }).compile(bazaar);
  assert.ok(listed(info), `${path} bazaar: ${JSON.stringify(listed.errors)}`);
  answered++;
}
assert.equal(answered, 19);
done(`ajv: ${answered} examples, answers, demands and listings are as published`);

const card = await new DefaultAgentCardResolver().resolve(base);
assert.equal(card.name, "Countersign");
assert.equal(card.skills.length, 19);
done("@a2a-js/sdk resolves the agent card");

for (const path of ["/changelog/feed.xml", "/changelog/feed.json", "/feed.json"]) {
  const { format, feed } = parseFeed(await text(path));
  const items = feed.items ?? feed.entries;
  assert.ok(items.length > 0, `${path} is empty`);
  done(`feedsmith reads ${path} as ${format}, ${items.length} items`);
}
const rss = await new RSSParser().parseString(await text("/changelog/feed.xml"));
assert.equal(rss.feedUrl, `${base}/changelog/feed.xml`);
assert.ok(rss.items.every((item) => item.link.startsWith(base) && !Number.isNaN(Date.parse(item.isoDate))));
done("rss-parser reads the RSS feed");

const robots = robotsParser(`${base}/robots.txt`, await text("/robots.txt"));
for (const agent of ["Googlebot", "GPTBot", "ClaudeBot"]) {
  assert.ok(robots.isAllowed(`${base}/docs`, agent) && !robots.isAllowed(`${base}/account`, agent) && !robots.isAllowed(`${base}/api/downloads/x`, agent), agent);
}
assert.deepEqual(robots.getSitemaps(), [`${base}/sitemap.xml`]);
done("robots-parser reads robots.txt");

const serverCard = await (await get("/.well-known/mcp/server-card.json")).json();
// Its schema is fetched, or read from the file SERVER_CARD_SCHEMA (schema.json of
// github.com/modelcontextprotocol/experimental-ext-server-card).
const cardSchema = process.env.SERVER_CARD_SCHEMA
  ? JSON.parse(readFileSync(process.env.SERVER_CARD_SCHEMA, "utf8"))
  : await fetch(serverCard.$schema).then((r) => (r.ok ? r.json() : null)).catch(() => null);
if (cardSchema) {
  const held = addFormats(new Ajv2020({ strict: false, allErrors: true })).addSchema(cardSchema, "card");
  const valid = held.getSchema(cardSchema.$defs?.ServerCard ? "card#/$defs/ServerCard" : "card");
  assert.ok(valid(serverCard), JSON.stringify(valid.errors));
  done("ajv: the server card is valid under its schema");
} else {
  done(`skipped: ${serverCard.$schema} is not to be had`);
}

// A crawler from the first page and every document: no dead link, own or fragment.
const pages = new Map(), queue = ["/", "/docs", "/llms.txt", "/sitemap.xml", "/llms-full.txt"];
while (queue.length) {
  const path = queue.pop();
  if (pages.has(path)) continue;
  const answer = await fetch(base + path, { headers: { Accept: "text/html,*/*;q=0.8" }, redirect: "manual" });
  const media = answer.headers.get("content-type") ?? "";
  const body = /html|markdown|plain|xml/.test(media) ? await answer.text() : (await answer.arrayBuffer(), "");
  pages.set(path, { status: answer.status, body, links: [] });
  if (path.startsWith("/rules/") && pages.size > 1500) continue;
  const found = media.includes("html")
    ? [...body.matchAll(/(?:href|src|action)="([^"]+)"/g)].map((m) => m[1].replaceAll("&amp;", "&"))
    : [...body.matchAll(/\]\(([^)\s]+)\)|<loc>([^<]+)<\/loc>/g)].map((m) => m[1] ?? m[2]);
  for (const link of found) {
    const target = new URL(link, base + path);
    if (target.origin !== base || target.pathname.includes("{") || /^\/(mcp|api\/auth|api\/purchase|tools\/[a-z0-9_]+\/try)/.test(target.pathname)) continue;
    pages.get(path).links.push(target.pathname + target.hash);
    if (!pages.has(target.pathname)) queue.push(target.pathname);
  }
}
const dead = [];
for (const [path, page] of pages) {
  for (const link of page.links) {
    const [to, fragment] = link.split("#");
    const target = pages.get(to);
    if (![200, 303, 401, 402].includes(target.status) && !(target.status === 405)) dead.push(`${path} -> ${link}: ${target.status}`);
    else if (fragment && target.status === 200 && target.body.includes("<html") && !target.body.includes(`id="${fragment}"`)) dead.push(`${path} -> ${link}: no such fragment`);
  }
}
assert.deepEqual([...new Set(dead)].slice(0, 20), []);
done(`no dead link on ${pages.size} pages and documents`);
