import { request } from "../lib/api.svelte.ts";

export interface Point {
  readonly at: string;
  readonly attempts: number;
  readonly acknowledged: number;
  readonly failed_attempts: number;
  readonly dead: number;
  readonly p50_ms?: number;
  readonly p99_ms?: number;
}

export interface Stats {
  readonly points: readonly Point[];
  readonly total: Omit<Point, "at">;
}

/** The ranges that can be chosen, each in steps that make some sixty bars or fewer. */
export const ranges = [
  { name: "1h", label: "Hour", hours: 1, step: "minute" },
  { name: "24h", label: "Day", hours: 24, step: "hour" },
  { name: "7d", label: "Week", hours: 168, step: "hour" },
  { name: "30d", label: "30 days", hours: 720, step: "day" },
] as const;

export type Range = (typeof ranges)[number];

export async function readStats(range: Range, endpoint: string | undefined, signal: AbortSignal): Promise<Stats> {
  const query = new URLSearchParams({ since: new Date(Date.now() - range.hours * 3_600_000).toISOString(), step: range.step });
  if (endpoint) query.set("endpoint", endpoint);
  return request<Stats>("GET", `/v1/stats?${query}`, undefined, signal);
}
