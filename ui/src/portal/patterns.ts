/** The patterns of a text with one on each line, or separated by commas. */
export function readPatterns(text: string): string[] {
  const list = text.split(/[\s,]+/).filter(Boolean);
  return list.length > 0 ? [...new Set(list)] : ["*"];
}

/** What is wrong with a list of patterns, if something is. The server decides in the end. */
export function wrongPattern(text: string): string | undefined {
  const bad = text.split(/[\s,]+/).find((p) => p !== "" && !/^(\*|[^*\s]+|[^*\s]+\.\*)$/.test(p));
  return bad === undefined ? undefined : `${bad} is no pattern: write a type, such as order.paid, all below a name, such as order.*, or * for all`;
}

export function wrongURL(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  if (!URL.canParse(text.trim())) return "is not a URL, such as https://example.com/webhooks";
  const url = new URL(text.trim());
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must begin with https://";
  return url.username || url.password ? "must not hold a password" : undefined;
}
