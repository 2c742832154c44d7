import { location } from "./router.svelte.ts";

/** Ranges of charts. The one chosen stands in the address as `range`, or as `since` and `until`. */
export const ranges = [
  { id: "15m", label: "15 min", seconds: 900 },
  { id: "1h", label: "1 h", seconds: 3_600 },
  { id: "6h", label: "6 h", seconds: 21_600 },
  { id: "24h", label: "24 h", seconds: 86_400 },
  { id: "7d", label: "7 d", seconds: 604_800 },
  { id: "30d", label: "30 d", seconds: 2_592_000 },
] as const;

export interface Range {
  readonly since: string;
  readonly until: string;
  readonly seconds: number;
  readonly step: "minute" | "hour" | "day";
}

export function chosen(usual = "1h"): string {
  return location.query.has("since") ? "" : (location.query.get("range") ?? usual);
}

/** The range that the address names, up to a time that the caller moves. */
export function rangeAt(now: number, usual = "1h"): Range {
  const since = location.query.get("since");
  const until = location.query.get("until");
  let from: number;
  let to = until ? Date.parse(until) : now;
  if (Number.isNaN(to)) to = now;
  from = since ? Date.parse(since) : NaN;
  if (Number.isNaN(from) || from >= to) from = to - (ranges.find((r) => r.id === chosen(usual))?.seconds ?? 3_600) * 1000;
  const seconds = (to - from) / 1000;
  return { since: new Date(from).toISOString(), until: new Date(to).toISOString(), seconds, step: seconds <= 6 * 3_600 ? "minute" : seconds <= 7 * 86_400 ? "hour" : "day" };
}
