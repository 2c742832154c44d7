import { environment, lines, named, type NamedKey, type Settings } from "./settings.ts";

/** A script that verifies one delivery with openssl. It remembers nothing: a repeat within five minutes verifies again. */
export function shellProgram(s: Settings): string {
  const key = named(s)[0]!;
  return lines(
    "#!/bin/sh",
    "# Verifies one delivery of this endpoint, to try it out. A shared secret is visible to other",
    "# users of this machine while openssl runs: in production use one of the packages.",
    "#",
    `#   ${environment({ ...s, keys: s.keys.slice(0, 1) })}sh verify.sh HEADERS BODY`,
    "#",
    "# HEADERS is a file with the header fields as they came, one per line; BODY has the exact bytes of the body.",
    "set -euf",
    "headers=$1 body=$2",
    "",
    "fail() { echo \"refused: $1\" >&2; exit 1; }",
    "field() {",
    "  awk -F: -v name=\"$1\" '{ sub(/\\r$/, \"\") }",
    "    tolower($1) == name { sub(/^[^:]*:[ \\t]*/, \"\"); print; exit }' \"$headers\"",
    "}",
    "fresh() { # the time in seconds since 1970, at most five minutes from now",
    "  case $1 in '' | *[!0-9]* | 0* | ???????????*) fail 'no time is signed' ;; esac",
    "  age=$(($(date +%s) - $1))",
    "  [ \"$age\" -le 300 ] && [ \"$age\" -ge -300 ] || fail 'the signature is too old, or from the future'",
    "}",
    !isText(s) && "base64() { openssl base64 -d -A; }",
    !isText(s) && key.variable !== undefined && "hex() { od -An -v -tx1 | tr -d ' \\n'; }",
    !isText(s) && "work=$(mktemp -d)",
    !isText(s) && "trap 'rm -rf \"$work\"' EXIT",
    "",
    isText(s) ? textScript(s) : s.profile === "eds" ? edsScript(s, key) : standardScript(key),
    "echo verified",
  );
}

/** OJS and CYBERCUBE sign `<time>.<body>` with the bytes of the secret's text. */
const isText = (s: Settings): boolean => s.profile === "ojs" || s.profile === "cybercube";

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** If openssl fails, an empty signature must not pass for a match. */
const made = "[ -n \"$mac\" ] || fail 'openssl made no signature'";

function textScript(s: Settings): string {
  const prefix = s.profile === "ojs" ? "x-ojs" : "x-webhook";
  return [
    `time=$(field ${prefix}-timestamp)`,
    'fresh "$time"',
    "mac=$({ printf '%s.' \"$time\"; cat \"$body\"; } | openssl dgst -sha256 -hmac \"$WEBHOOK_SECRET\" -r | cut -d' ' -f1)",
    made,
    `case ",$(field ${prefix}-signature | tr -d ' ')," in`,
    '  *",sha256=$mac,"*) ;;',
    "  *) fail 'no signature verifies' ;;",
    "esac",
  ].join("\n");
}

function standardScript(key: NamedKey): string {
  const head = ["time=$(field webhook-timestamp)", 'fresh "$time"', "{ printf '%s.%s.' \"$(field webhook-id)\" \"$time\"; cat \"$body\"; } >\"$work/signed\""];
  if (key.variable) {
    return [
      ...head,
      `secret=$(printf %s "\${${key.variable}#whsec_}" | base64 | hex)`,
      'mac=$(openssl dgst -sha256 -mac HMAC -macopt "hexkey:$secret" -binary "$work/signed" | openssl base64 -A)',
      made,
      'case " $(field webhook-signature) " in',
      '  *" v1,$mac "*) ;;',
      "  *) fail 'no signature verifies' ;;",
      "esac",
    ].join("\n");
  }
  return [
    ...head,
    ...publicKey(key),
    "verified=no",
    "for signature in $(field webhook-signature); do",
    "  case $signature in v1a,*) ;; *) continue ;; esac",
    "  printf %s \"${signature#v1a,}\" | base64 >\"$work/signature\"",
    "  if openssl pkeyutl -verify -pubin -inkey \"$work/key\" -rawin -in \"$work/signed\" -sigfile \"$work/signature\" >\"$work/said\" 2>&1; then verified=yes; fi",
    "done",
    "[ $verified = yes ] || fail 'no signature verifies'",
  ].join("\n");
}

/** The public key in PEM: 12 bytes before it say that it is of Ed25519. */
function publicKey(key: NamedKey): string[] {
  return [`printf '%s\\n' '-----BEGIN PUBLIC KEY-----' ${quoted(`MCowBQYDK2VwAyEA${key.publicKey}`)} '-----END PUBLIC KEY-----' >"$work/key"`];
}

function edsScript(s: Settings, key: NamedKey): string {
  return [
    `key_id=${key.id === undefined ? "$WEBHOOK_KEY_ID" : quoted(key.id)}`,
    `url=${quoted(s.url)}`,
    "",
    "[ \"$(field content-digest)\" = \"sha-256=:$(openssl dgst -sha256 -binary \"$body\" | openssl base64 -A):\" ] ||",
    "  fail 'the body is not the one that was signed'",
    "",
    "# The signature of this key: its label, what it covers, and its parameters.",
    "input=$(field signature-input | grep -o 'sig[0-9]*=([^)]*)[^,]*' | grep \";keyid=\\\"$key_id[/\\\"]\" | head -n 1)",
    "[ -n \"$input\" ] || fail 'there is no signature of this key'",
    "label=${input%%=*} parameters=${input#*=}",
    "covered=${parameters%%)*}",
    "for name in @method @target-uri content-digest content-type idempotency-key; do",
    "  case $covered in *\"\\\"$name\\\"\"*) ;; *) fail \"$name is not signed\" ;; esac",
    "done",
    "fresh \"$(printf %s \"$parameters\" | sed -n 's/.*;created=\\([0-9]*\\).*/\\1/p')\"",
    "",
    "for name in $(printf %s \"$covered\" | tr -d '(\"'); do",
    "  case $name in",
    `    @method) value=${s.method === "PUT" ? "PUT" : "POST"} ;;`,
    "    @target-uri) value=$url ;;",
    "    *) value=$(field \"$name\") ;;",
    "  esac",
    "  printf '\"%s\": %s\\n' \"$name\" \"$value\"",
    "done >\"$work/signed\"",
    "printf '\"@signature-params\": %s' \"$parameters\" >>\"$work/signed\"",
    "signature=$(field signature | grep -o \"$label=:[^:]*:\" | head -n 1 | cut -d: -f2)",
    ...(key.variable
      ? [
          `secret=$(printf %s "$${key.variable}" | base64 | hex)`,
          'mac=$(openssl dgst -sha256 -mac HMAC -macopt "hexkey:$secret" -binary "$work/signed" | openssl base64 -A)',
          made,
          "[ \"$signature\" = \"$mac\" ] || fail 'the signature does not verify'",
        ]
      : [
          ...publicKey(key),
          "printf %s \"$signature\" | base64 >\"$work/signature\"",
          "openssl pkeyutl -verify -pubin -inkey \"$work/key\" -rawin -in \"$work/signed\" -sigfile \"$work/signature\" >\"$work/said\" 2>&1 ||",
          "  fail 'the signature does not verify'",
        ]),
  ].join("\n");
}
