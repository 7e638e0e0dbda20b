// A typed client of the generated types, held to TypeScript's own checker.
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080", headers: { "X-API-Key": "svck_" } });

export async function risk(command: string): Promise<"low" | "medium" | "high" | "critical"> {
  const { data, error } = await client.POST("/api/agent-services/action-safety/quick", { body: { command } });
  if (!data) throw new Error(JSON.stringify(error));
  return data.risk as "low" | "medium" | "high" | "critical";
}

export async function price(): Promise<number> {
  const { data } = await client.POST("/api/agent-services/options/price", {
    body: { optionType: "call", spot: 100, strike: 95, riskFreeRate: 0.03, volatility: 0.25, timeToExpiryYears: 0.5 },
  });
  if (!data) throw new Error("refused");
  return data.price;
}

export async function pages() {
  return client.GET("/api/content", { params: { query: { type: "guides", limit: 5 } } });
}
