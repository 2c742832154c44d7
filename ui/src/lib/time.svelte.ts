/** Times are shown in the reader's own time zone, with UTC on hover. */
let now = $state(Date.now());
let timer: ReturnType<typeof setInterval> | undefined;

/** The current time, which moves every few seconds so that relative times stay true. */
export const clock = {
  get now(): number {
    timer ??= setInterval(() => (now = Date.now()), 5_000);
    return now;
  },
};

/** Moves the clock now, so that what has just arrived is not in its future. */
export function tick(): void {
  now = Date.now();
}

const units: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in one or two units: 45 s, 3 min, 2 h 5 min. */
export function span(seconds: number): string {
  const s = Math.abs(seconds);
  if (s < 1) return s === 0 ? "0 s" : `${Math.round(s * 1000)} ms`;
  for (const [i, [size, name]] of units.entries()) {
    if (s < size) continue;
    const whole = Math.floor(s / size);
    const next = units[i + 1];
    const rest = next ? Math.floor((s - whole * size) / next[0]) : 0;
    if (size === 1) return `${s < 10 ? +s.toFixed(1) : Math.round(s)} s`;
    return next && rest > 0 && whole < 10 ? `${whole} ${name} ${rest} ${next[1]}` : `${whole} ${name}`;
  }
  return "0 s";
}

export function relative(at: number, from: number): string {
  const seconds = Math.round((from - at) / 1000);
  if (Math.abs(seconds) < 1) return "now";
  const text = span(Math.abs(seconds) < 60 ? seconds : Math.round(seconds / 60) * 60).replace(/ (\d+) s$/, "");
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dayTime = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

/** A time of today without its day, others with it. */
export function local(at: Date, from: number): string {
  return at.toDateString() === new Date(from).toDateString() ? clockTime.format(at) : dayTime.format(at);
}

export function localWhole(at: Date): string {
  return whole.format(at);
}

/** The value of an input of type datetime-local, in local time. */
export function forInput(iso: string | null): string {
  if (!iso) return "";
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function fromInput(value: string): string | undefined {
  if (value === "") return undefined;
  const at = new Date(value);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
