/**
 * The field lines of a message, in order. A Fetch `Headers` has already joined repeated lines with ", "; Node's raw
 * headers are kept line by line, so that a repeated Idempotency-Key is noticed (IKH-SYN-5).
 */
export type HeadersLike =
  | Headers
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export class Fields {
  readonly #lines = new Map<string, string[]>();

  constructor(source?: HeadersLike | Fields) {
    if (source === undefined) return;
    if (source instanceof Fields) {
      for (const [name, values] of source.#lines) this.#lines.set(name, [...values]);
    } else if (Symbol.iterator in source) {
      for (const [name, value] of source as Iterable<readonly [string, string]>) this.#add(name, value);
    } else {
      for (const [name, value] of Object.entries(source as Record<string, string | readonly string[] | undefined>)) {
        for (const line of typeof value === "string" ? [value] : (value ?? [])) this.#add(name, line);
      }
    }
  }

  /** Node's `rawHeaders`: alternating names and values. */
  static fromRaw(raw: readonly string[]): Fields {
    const fields = new Fields();
    for (let i = 0; i + 1 < raw.length; i += 2) fields.#add(raw[i]!, raw[i + 1]!);
    return fields;
  }

  #add(name: string, value: unknown): void {
    const key = name.toLowerCase();
    const line = String(value).replace(/^[ \t]+|[ \t]+$/g, "");
    const lines = this.#lines.get(key);
    if (lines === undefined) this.#lines.set(key, [line]);
    else lines.push(line);
  }

  /** Each line of a field. */
  lines(name: string): readonly string[] {
    return this.#lines.get(name.toLowerCase()) ?? [];
  }

  /** The field's value, its lines joined as RFC 9110 says; undefined if there is none. */
  get(name: string): string | undefined {
    const lines = this.lines(name);
    return lines.length === 0 ? undefined : lines.join(", ");
  }

  *[Symbol.iterator](): Generator<[string, string]> {
    for (const [name, lines] of this.#lines) for (const line of lines) yield [name, line];
  }
}
