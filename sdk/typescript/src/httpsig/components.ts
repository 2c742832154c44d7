/**
 * Component identifiers and their values (RFC 9421, section 2). Every derived component and the parameters sf, key, bs,
 * tr and req are supported; anything else is refused, because a wrong base is a signature over something else.
 */
import { base64 } from "../crypto/bytes.js";
import { WebhookSignatureError } from "../errors.js";
import { authority, pathAndQuery, splitUri, type SignedMessage, type StructuredType, type TargetUri } from "./message.js";
import {
  parseDictionary,
  parseItem,
  parseList,
  serializeDictionary,
  serializeItem,
  serializeList,
  serializeMember,
  type Item,
} from "./structured.js";

export interface Component {
  readonly name: string;
  /** The identifier as it stands in the signature base. */
  readonly id: string;
  /** Name and parameters, in any order, which make it distinct. */
  readonly identity: string;
  readonly key?: string;
  readonly queryName?: string;
  readonly sf: boolean;
  readonly bs: boolean;
  readonly tr: boolean;
  readonly req: boolean;
}

const derived = new Set([
  "@method",
  "@target-uri",
  "@authority",
  "@scheme",
  "@request-target",
  "@path",
  "@query",
  "@query-param",
  "@status",
]);

const fieldName = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;

function malformed(id: string, why: string): WebhookSignatureError {
  return new WebhookSignatureError(`component ${id}: ${why}`, "malformed");
}

function missing(id: string, why: string): WebhookSignatureError {
  return new WebhookSignatureError(`component ${id}: ${why}`, "missing-component");
}

/** Reads an identifier as people write it: a bare name, or a structured item if it has parameters. */
export function component(name: string): Component {
  return readComponent(name.startsWith('"') ? parseItem([name]) : { value: name, params: new Map() });
}

export function readComponent(item: Item): Component {
  const name = item.value;
  if (typeof name !== "string") throw malformed("", "identifier is not a string");
  const id = serializeItem(item);
  const flags = { sf: false, bs: false, tr: false, req: false };
  let key: string | undefined;
  let queryName: string | undefined;
  for (const [param, value] of item.params) {
    if (param === "key" || param === "name") {
      if (typeof value !== "string") throw malformed(id, `parameter ${param} is not a string`);
      if (param === "key") key = value;
      else queryName = value;
    } else if (param === "sf" || param === "bs" || param === "tr" || param === "req") {
      if (value !== true) throw malformed(id, `parameter ${param} is not a true flag`);
      flags[param] = true;
    } else {
      throw malformed(id, `parameter ${param} is not known`);
    }
  }
  const identity = JSON.stringify([name, key ?? null, queryName ?? null, flags.sf, flags.bs, flags.tr, flags.req]);
  const read: Component = {
    name,
    id,
    identity,
    ...flags,
    ...(key === undefined ? {} : { key }),
    ...(queryName === undefined ? {} : { queryName }),
  };
  check(read);
  return read;
}

function check(c: Component): void {
  if (c.name.startsWith("@")) {
    if (!derived.has(c.name)) throw malformed(c.id, "derived component is not known");
    if (c.sf || c.bs || c.tr || c.key !== undefined) throw malformed(c.id, "parameter belongs to fields");
    if ((c.queryName !== undefined) !== (c.name === "@query-param")) {
      throw malformed(c.id, 'parameter name belongs to "@query-param", which needs it');
    }
    return;
  }
  if (!fieldName.test(c.name)) throw malformed(c.id, "not a field name in lower case");
  if (c.queryName !== undefined) throw malformed(c.id, 'parameter name belongs to "@query-param"');
  if (c.bs && (c.sf || c.key !== undefined)) throw malformed(c.id, "parameter bs excludes sf and key");
}

/** One line of the signature base (RFC 9421, section 2.5). */
export function baseLine(message: SignedMessage, c: Component): string {
  const value = componentValue(message, c);
  const isDerived = c.name.startsWith("@");
  if (!(isDerived ? /^[ -~]*$/ : /^[\t -~]*$/).test(value) || (isDerived && value !== value.trim())) {
    throw malformed(c.id, "value has characters that cannot be signed");
  }
  return `${c.id}: ${value}`;
}

function componentValue(message: SignedMessage, c: Component): string {
  if (!c.req) return c.name.startsWith("@") ? derivedValue(message, c) : fieldValue(message, c);
  if (message.request === undefined) throw malformed(c.id, "parameter req belongs to responses");
  return c.name.startsWith("@") ? derivedValue(message.request, c) : fieldValue(message.request, c);
}

function derivedValue(message: SignedMessage, c: Component): string {
  if ((c.name === "@status") !== (message.status !== undefined)) {
    throw malformed(c.id, "component does not belong to this kind of message");
  }
  if (c.name === "@status") return String(message.status);
  if (c.name === "@method") return message.method ?? "GET";
  if (c.name === "@request-target" && message.requestTarget !== undefined) return message.requestTarget;
  if (message.url === undefined) throw missing(c.id, "request has no target URI");
  const uri = splitUri(message.url);
  switch (c.name) {
    case "@target-uri":
      return `${uri.scheme}://${uri.host}${pathAndQuery(uri)}`;
    case "@authority":
      return authority(uri);
    case "@scheme":
      return uri.scheme;
    case "@request-target":
      return pathAndQuery(uri);
    case "@path":
      return uri.path;
    case "@query":
      return `?${uri.query ?? ""}`;
    default:
      return queryParam(uri, c);
  }
}

/** The value of a query parameter, decoded and encoded again so that all its spellings give one value (section 2.2.8). */
function queryParam(uri: TargetUri, c: Component): string {
  const found = [...new URLSearchParams(uri.query ?? "")].filter(([name]) => formEncode(name) === c.queryName);
  if (found.length === 0) throw missing(c.id, "not in the query");
  if (found.length > 1) throw malformed(c.id, "occurs more than once");
  const value = found[0]![1];
  // URLSearchParams puts U+FFFD for bytes that are no UTF-8; the sender may have signed other bytes.
  if (value.includes("\ufffd")) throw malformed(c.id, "value is not UTF-8");
  return formEncode(value);
}

function formEncode(value: string): string {
  return encodeURIComponent(value).replace(/[!'()~]/g, (ch) => `%${ch.charCodeAt(0).toString(16).toUpperCase()}`);
}

const structuredTypes: Readonly<Record<string, StructuredType>> = {
  "content-digest": "dictionary",
  "repr-digest": "dictionary",
  signature: "dictionary",
  "signature-input": "dictionary",
  "idempotency-key": "item",
};

function fieldValue(message: SignedMessage, c: Component): string {
  const lines = (c.tr ? message.trailers : message.fields)?.lines(c.name) ?? [];
  if (lines.length === 0) throw missing(c.id, "not in the message");
  if (c.bs) return lines.map((line) => `:${base64(Uint8Array.from(line, (ch) => ch.charCodeAt(0)))}:`).join(", ");
  if (c.key !== undefined) {
    const member = parseDictionary(lines).get(c.key);
    if (member === undefined) throw missing(c.id, "not in the field");
    return serializeMember(member);
  }
  if (!c.sf) return lines.join(", ");
  switch (message.structuredFields?.[c.name] ?? structuredTypes[c.name]) {
    case "dictionary":
      return serializeDictionary(parseDictionary(lines));
    case "list":
      return serializeList(parseList(lines));
    case "item":
      return serializeItem(parseItem(lines));
    default:
      throw malformed(c.id, "type of the structured field is not known");
  }
}
