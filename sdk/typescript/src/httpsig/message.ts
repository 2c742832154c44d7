/** The source of component values: a request, or (to prove the reading of RFC 9421) a response. */
import { utf8 } from "../crypto/bytes.js";
import { WebhookSignatureError } from "../errors.js";
import type { Fields } from "../fields.js";

export interface SignedMessage {
  readonly method?: string;
  /** The target URI as the client sent it. */
  readonly url?: string;
  /** The target of an HTTP/1.1 request line, if it is not path and query of the URL. */
  readonly requestTarget?: string;
  readonly fields: Fields;
  readonly trailers?: Fields;
  /** Of a response. */
  readonly status?: number;
  /** The request that a response answers. */
  readonly request?: SignedMessage;
  /** Types of structured fields beside the known ones, for the parameter `sf`. */
  readonly structuredFields?: Readonly<Record<string, StructuredType>>;
}

export type StructuredType = "item" | "list" | "dictionary";

export interface TargetUri {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  /** Without the question mark; undefined if there is none. */
  readonly query: string | undefined;
}

/** Splits an absolute http URI and decodes nothing. */
export function splitUri(uri: string): TargetUri {
  const match = /^(https?):\/\/([^/?#@]+)([^?#]*)(?:\?([^#]*))?/i.exec(uri);
  if (match === null) throw new WebhookSignatureError("the target URI is not an absolute http URI", "malformed");
  const [, scheme = "", host = "", path = "", query] = match;
  return { scheme: scheme.toLowerCase(), host, path: path || "/", query };
}

export function pathAndQuery(uri: TargetUri): string {
  return uri.query === undefined ? uri.path : `${uri.path}?${uri.query}`;
}

/** The host in lower case, without the scheme's default port (RFC 9110, section 4.2.3). */
export function authority(uri: TargetUri): string {
  const host = uri.host.toLowerCase();
  return host.replace(uri.scheme === "https" ? /:(443)?$/ : /:(80)?$/, "");
}

/**
 * The public URI of a receiver in normal form: scheme and host in lower case, no default port, no fragment (EDS T-23).
 */
export function normalizedUri(uri: TargetUri): string {
  return `${uri.scheme}://${authority(uri)}${pathAndQuery(uri)}`;
}

/**
 * A path in its simplest spelling: servers route /%68ooks as /hooks, so both must be one address. Only characters that
 * cannot occur in a path stay escaped. An invalid escape leaves the path as it is.
 */
export function plainPath(path: string): string {
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return path;
  const bytes = utf8(path);
  let plain = "";
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at]!;
    if (byte === 0x25) {
      byte = parseInt(String.fromCharCode(bytes[at + 1]!, bytes[at + 2]!), 16);
      at += 2;
    }
    const character = String.fromCharCode(byte);
    const stands = byte > 0x20 && byte <= 0x7e && !'"#%<>?[\\]^`{|}'.includes(character);
    plain += stands ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return plain;
}
