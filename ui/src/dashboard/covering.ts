import type { Stats, StatsPoint } from "@godwit/client";

const steps = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** The points of a history from the time on that it covers, so that a young server has no empty chart. */
export function covering(stats: Stats | undefined, since?: string): readonly StatsPoint[] {
  if (!stats) return [];
  const from = Math.max(Date.parse(stats.covered_since), since ? Date.parse(since) : 0) - steps[stats.step];
  const points = stats.points.filter((p) => Date.parse(p.at) > from);
  return points.length < 2 ? stats.points.slice(-10) : points;
}
