import type { Endpoint, EndpointStats } from "@godwit/client";

/** One word for how an endpoint is, the worst first. */
export function health(endpoint: Pick<Endpoint, "status">, stats?: EndpointStats): string {
  if (endpoint.status !== "active") return endpoint.status;
  if (!stats) return "active";
  if (stats.health.circuit_open_at) return "circuit open";
  if (stats.health.degraded) return "degraded";
  if (stats.health.streak > 0) return "failing";
  return "healthy";
}
