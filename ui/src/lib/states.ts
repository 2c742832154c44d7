/** One tone for each meaning, over all pages. */
export type Tone = "good" | "warn" | "bad" | "plain";

const tones: Readonly<Record<string, Tone>> = {
  // deliveries and attempts
  accepted: "good",
  pending: "plain",
  transient: "warn",
  terminal: "bad",
  exhausted: "bad",
  cancelled: "plain",
  // endpoints, sources
  active: "good",
  healthy: "good",
  paused: "plain",
  disabled: "bad",
  degraded: "warn",
  failing: "warn",
  "circuit open": "bad",
  open: "bad",
  // commands
  executed: "good",
  in_progress: "plain",
  awaiting_confirmation: "warn",
  needs_reconciliation: "warn",
  failed: "bad",
  rejected: "bad",
  compensated: "warn",
  // nodes, keys
  running: "good",
  starting: "plain",
  leaving: "warn",
  silent: "bad",
  live: "good",
  revoked: "bad",
  expired: "plain",
  deprecated: "warn",
};

export function tone(state: string): Tone {
  return tones[state] ?? "plain";
}
