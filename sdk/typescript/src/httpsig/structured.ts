/**
 * Structured field values (RFC 9651): the parts of parsing and serialisation that signatures, digests and keys need.
 * Parsing fails with a {@link StructuredFieldError}; it never guesses.
 */
import { base64, fromBase64, strictText, type Bytes } from "../crypto/bytes.js";

export class StructuredFieldError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StructuredFieldError";
  }
}

/** A word without quotes, such as `gzip`. */
export class Token {
  constructor(readonly value: string) {}
}

/** Seconds since 1970. */
export class SfDate {
  constructor(readonly seconds: number) {}
}

/** A number with a fraction. It is not an integer, even `1.0`. */
export class Decimal {
  constructor(readonly value: number) {}
}

/** Text beyond ASCII. */
export class DisplayString {
  constructor(readonly value: string) {}
}

export type BareItem = string | number | boolean | Bytes | Token | SfDate | Decimal | DisplayString;
export type Parameters = ReadonlyMap<string, BareItem>;
export interface Item {
  readonly value: BareItem;
  readonly params: Parameters;
}
export interface InnerList {
  readonly items: readonly Item[];
  readonly params: Parameters;
}
export type Member = Item | InnerList;

export function isInnerList(member: Member | undefined): member is InnerList {
  return member !== undefined && "items" in member;
}

export function parseItem(lines: readonly string[]): Item {
  return new Parser(lines).whole((p) => p.item());
}

export function parseList(lines: readonly string[]): Member[] {
  return new Parser(lines).whole((p) => p.list());
}

export function parseDictionary(lines: readonly string[]): Map<string, Member> {
  return new Parser(lines).whole((p) => p.dictionary());
}

const keyStart = /[a-z*]/;
const keyRest = /[a-z0-9_\-.*]/;
const tokenStart = /[A-Za-z*]/;
const tokenRest = /[A-Za-z0-9!#$%&'*+\-.^_`|~:/]/;

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(lines: readonly string[]) {
    this.#text = lines.join(", ");
  }

  whole<T>(parse: (parser: Parser) => T): T {
    this.#spaces();
    const value = parse(this);
    this.#spaces();
    if (this.#at < this.#text.length) throw new StructuredFieldError(`unexpected character at ${this.#at}`);
    return value;
  }

  #next(): string {
    return this.#text[this.#at] ?? "";
  }

  #spaces(): void {
    while (this.#next() === " ") this.#at++;
  }

  #optionalWhitespace(): void {
    while (this.#next() === " " || this.#next() === "\t") this.#at++;
  }

  #expect(character: string): void {
    if (this.#next() !== character) throw new StructuredFieldError(`expected ${character} at ${this.#at}`);
    this.#at++;
  }

  #while(pattern: RegExp): string {
    const start = this.#at;
    while (this.#next() !== "" && pattern.test(this.#next())) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  list(): Member[] {
    const members: Member[] = [];
    this.#commaSeparated(() => members.push(this.#member()));
    return members;
  }

  dictionary(): Map<string, Member> {
    const members = new Map<string, Member>();
    this.#commaSeparated(() => {
      const key = this.#key();
      let member: Member;
      if (this.#next() === "=") {
        this.#at++;
        member = this.#member();
      } else {
        member = { value: true, params: this.#params() };
      }
      members.delete(key); // a repeated key counts where it occurs last
      members.set(key, member);
    });
    return members;
  }

  #commaSeparated(parse: () => void): void {
    while (this.#at < this.#text.length) {
      parse();
      this.#optionalWhitespace();
      if (this.#at >= this.#text.length) return;
      this.#expect(",");
      this.#optionalWhitespace();
      if (this.#at >= this.#text.length) throw new StructuredFieldError("ends with a comma");
    }
  }

  #member(): Member {
    return this.#next() === "(" ? this.#innerList() : this.item();
  }

  #innerList(): InnerList {
    this.#expect("(");
    const items: Item[] = [];
    for (;;) {
      this.#spaces();
      if (this.#next() === ")") {
        this.#at++;
        return { items, params: this.#params() };
      }
      items.push(this.item());
      if (this.#next() !== " " && this.#next() !== ")") throw new StructuredFieldError("inner list is not closed");
    }
  }

  item(): Item {
    return { value: this.#bareItem(), params: this.#params() };
  }

  #params(): Parameters {
    const params = new Map<string, BareItem>();
    while (this.#next() === ";") {
      this.#at++;
      this.#spaces();
      const key = this.#key();
      let value: BareItem = true;
      if (this.#next() === "=") {
        this.#at++;
        value = this.#bareItem();
      }
      params.delete(key);
      params.set(key, value);
    }
    return params;
  }

  #key(): string {
    if (!keyStart.test(this.#next())) throw new StructuredFieldError(`no key at ${this.#at}`);
    return this.#while(keyRest);
  }

  #bareItem(): BareItem {
    const c = this.#next();
    if (c === '"') return this.#string();
    if (c === ":") return this.#byteSequence();
    if (c === "?") return this.#boolean();
    if (c === "@") return this.#date();
    if (c === "%") return this.#displayString();
    if (c === "-" || /[0-9]/.test(c)) return this.#number();
    if (tokenStart.test(c)) return new Token(this.#while(tokenRest));
    throw new StructuredFieldError(`no value at ${this.#at}`);
  }

  #number(): number | Decimal {
    const match = /^(-?)([0-9]+)(?:\.([0-9]*))?/.exec(this.#text.slice(this.#at, this.#at + 32));
    const [all, , whole = "", fraction] = match ?? [];
    if (all === undefined || fraction === "") throw new StructuredFieldError("malformed number");
    if (fraction === undefined ? whole.length > 15 : whole.length > 12 || fraction.length > 3) {
      throw new StructuredFieldError("number is too long");
    }
    this.#at += all.length;
    return fraction === undefined ? Number(all) + 0 : new Decimal(Number(all));
  }

  #string(): string {
    this.#expect('"');
    let out = "";
    for (;;) {
      const c = this.#next();
      this.#at++;
      if (c === '"') return out;
      if (c === "\\") {
        const escaped = this.#next();
        if (escaped !== '"' && escaped !== "\\") throw new StructuredFieldError("unknown escape in a string");
        this.#at++;
        out += escaped;
      } else if (c === "" || c < " " || c > "~") {
        throw new StructuredFieldError(c === "" ? "string is not closed" : "character not allowed in a string");
      } else {
        out += c;
      }
    }
  }

  #byteSequence(): Bytes {
    this.#expect(":");
    const encoded = this.#while(/[A-Za-z0-9+/=]/);
    this.#expect(":");
    const bytes = fromBase64(encoded);
    if (bytes === undefined) throw new StructuredFieldError("malformed byte sequence");
    return bytes;
  }

  #boolean(): boolean {
    this.#expect("?");
    const c = this.#next();
    if (c !== "0" && c !== "1") throw new StructuredFieldError("malformed boolean");
    this.#at++;
    return c === "1";
  }

  #date(): SfDate {
    this.#expect("@");
    const value = this.#number();
    if (typeof value !== "number") throw new StructuredFieldError("a date has no fraction");
    return new SfDate(value);
  }

  #displayString(): DisplayString {
    this.#expect("%");
    this.#expect('"');
    const bytes: number[] = [];
    for (;;) {
      const c = this.#next();
      this.#at++;
      if (c === '"') break;
      if (c === "" || c < " " || c > "~") throw new StructuredFieldError("malformed display string");
      if (c !== "%") {
        bytes.push(c.charCodeAt(0));
        continue;
      }
      const digits = this.#text.slice(this.#at, this.#at + 2);
      if (!/^[0-9a-f]{2}$/.test(digits)) throw new StructuredFieldError("malformed display string");
      bytes.push(parseInt(digits, 16));
      this.#at += 2;
    }
    const value = strictText(Uint8Array.from(bytes));
    if (value === undefined) throw new StructuredFieldError("display string is no UTF-8");
    return new DisplayString(value);
  }
}

export function serializeItem(item: Item): string {
  return serializeBareItem(item.value) + serializeParams(item.params);
}

export function serializeMember(member: Member): string {
  if (!isInnerList(member)) return serializeItem(member);
  return `(${member.items.map(serializeItem).join(" ")})${serializeParams(member.params)}`;
}

export function serializeList(members: readonly Member[]): string {
  return members.map(serializeMember).join(", ");
}

export function serializeDictionary(members: ReadonlyMap<string, Member>): string {
  return [...members]
    .map(([key, member]) => {
      if (!isInnerList(member) && member.value === true) return checkKey(key) + serializeParams(member.params);
      return `${checkKey(key)}=${serializeMember(member)}`;
    })
    .join(", ");
}

function serializeParams(params: Parameters): string {
  let out = "";
  for (const [key, value] of params) out += `;${checkKey(key)}${value === true ? "" : `=${serializeBareItem(value)}`}`;
  return out;
}

function checkKey(key: string): string {
  if (!/^[a-z*][a-z0-9_\-.*]*$/.test(key)) throw new StructuredFieldError("malformed key");
  return key;
}

export function serializeBareItem(value: BareItem): string {
  if (typeof value === "string") return serializeString(value);
  if (typeof value === "boolean") return value ? "?1" : "?0";
  if (typeof value === "number") return serializeInteger(value);
  if (value instanceof Uint8Array) return `:${base64(value)}:`;
  if (value instanceof SfDate) return `@${serializeInteger(value.seconds)}`;
  if (value instanceof Decimal) return serializeDecimal(value.value);
  if (value instanceof DisplayString) return serializeDisplayString(value.value);
  if (!/^[A-Za-z*][A-Za-z0-9!#$%&'*+\-.^_`|~:/]*$/.test(value.value)) throw new StructuredFieldError("malformed token");
  return value.value;
}

export function serializeString(value: string): string {
  if (!/^[ -~]*$/.test(value)) throw new StructuredFieldError("character not allowed in a string");
  return `"${value.replace(/[\\"]/g, "\\$&")}"`;
}

function serializeInteger(value: number): string {
  if (!Number.isInteger(value) || Math.abs(value) > 999_999_999_999_999) throw new StructuredFieldError("no integer");
  return String(value);
}

function serializeDecimal(value: number): string {
  const rounded = Number(value.toFixed(3));
  if (!Number.isFinite(rounded) || Math.abs(rounded) >= 1e12) throw new StructuredFieldError("no decimal");
  return Number.isInteger(rounded) ? rounded.toFixed(1) : String(rounded);
}

function serializeDisplayString(value: string): string {
  let out = "";
  for (const b of new TextEncoder().encode(value)) {
    const plain = b >= 0x20 && b <= 0x7e && b !== 0x25 && b !== 0x22;
    out += plain ? String.fromCharCode(b) : `%${b.toString(16).padStart(2, "0")}`;
  }
  return `%"${out}"`;
}
