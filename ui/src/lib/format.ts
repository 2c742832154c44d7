const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

export function count(n: number): string {
  return n >= 100_000 ? short.format(n) : whole.format(n);
}

/** A rate: two significant digits below ten. */
export function rate(n: number): string {
  if (n === 0) return "0";
  if (n < 0.01) return "< 0.01";
  return n < 10 ? String(+n.toPrecision(2)) : count(n);
}

export function percent(part: number, all: number): string {
  if (all === 0) return "–";
  const value = (part / all) * 100;
  if (value === 100 || value === 0) return `${value} %`;
  return value > 99 ? `${Math.min(value, 99.99).toFixed(2)} %` : `${value.toFixed(1)} %`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MiB`;
  return `${(n / 1024 ** 3).toFixed(1)} GiB`;
}

export function milliseconds(n: number): string {
  if (n < 1) return n === 0 ? "0 ms" : `${n.toFixed(1)} ms`;
  if (n < 1000) return `${Math.round(n)} ms`;
  return n < 60_000 ? `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} s` : `${Math.round(n / 60_000)} min`;
}

/** An id shortened in the middle: its kind and its last characters tell it apart. */
export function shorten(id: string, head = 8, tail = 6): string {
  return id.length <= head + tail + 1 ? id : `${id.slice(0, head)}…${id.slice(-tail)}`;
}

/** Host and path of a URL, without what all of them have. */
export function bare(url: string): string {
  return url.replace(/^https?:\/\//, "");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A JSON value over several lines. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
