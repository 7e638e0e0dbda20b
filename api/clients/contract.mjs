// Extracts the schemas of the operations that the clients call from the service's OpenAPI document:
//
//	node contract.mjs openapi-full.json > contract.json
//
// The types of the clients are generated from the result. .ci/clients/run generates it again
// and fails if the committed file differs.
import { readFileSync } from "node:fs";

const operations = ["action_safety_quick_gate", "assurance_decide", "assurance_bind_receipt", "assurance_get_approval", "assurance_get_standing", "get_rule"];

const all = JSON.parse(readFileSync(process.argv[2], "utf8"));
const schemas = {}, missing = new Set(operations);

// Examples and descriptions are removed, because the types do not depend on them and they change often.
const lean = (value, within) => {
  if (Array.isArray(value)) return value.map((v) => lean(v, within));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value)
    .filter(([name]) => within === "properties" || !["description", "example", "examples", "headers"].includes(name))
    .map(([name, v]) => [name, lean(v, name)]));
};
const collect = (value) => {
  if (value === null || typeof value !== "object") return;
  const name = typeof value.$ref === "string" && value.$ref.replace("#/components/schemas/", "");
  if (name && !schemas[name]) {
    schemas[name] = lean(all.components.schemas[name]);
    collect(schemas[name]);
  }
  Object.values(value).forEach(collect);
};
for (const operation of Object.values(all.paths).flatMap(Object.values)) {
  if (!missing.delete(operation.operationId)) continue;
  collect(lean(operation.requestBody));
  for (const [status, response] of Object.entries(operation.responses)) if (status < "300" || status === "default") collect(lean(response));
}
if (missing.size > 0) throw new Error("the contract lacks " + [...missing]);
const sorted = (object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
console.log(JSON.stringify({ openapi: all.openapi, info: { title: all.info.title, version: all.info.version }, paths: {}, components: { schemas: sorted(schemas) } }, null, 1));
