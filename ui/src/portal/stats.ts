import type { Stats } from "@godwit/client";
import { api } from "../lib/api.svelte.ts";

/** The ranges that can be chosen, and the length of a bar. */
export const ranges = [
  { name: "1h", label: "Hour", hours: 1, step: "minute" },
  { name: "24h", label: "Day", hours: 24, step: "hour" },
  { name: "7d", label: "Week", hours: 168, step: "hour" },
  { name: "30d", label: "30 days", hours: 720, step: "day" },
] as const;

export type Range = (typeof ranges)[number];

export function readStats(range: Range, endpoint: string, signal: AbortSignal): Promise<Stats> {
  return api.getStats({ since: new Date(Date.now() - range.hours * 3_600_000).toISOString(), step: range.step, endpoint: endpoint === "" ? undefined : endpoint, signal });
}
