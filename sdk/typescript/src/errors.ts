/** Why a request was not accepted as signed. The values are stable: log them, count them. */
export type SignatureReason =
  | "missing"
  | "malformed"
  | "malformed-timestamp"
  | "missing-component"
  | "unknown-key"
  | "algorithm-mismatch"
  | "mismatch"
  | "digest-mismatch"
  | "too-old"
  | "from-future"
  | "expired"
  | "replayed";

/**
 * The verdict that a request is not what it claims to be. Whatever the headers hold, verification throws this class and
 * no other (OJS-SIG-10, CCW-SDK-5); any other error means that verification itself could not be done.
 */
export class WebhookSignatureError extends Error {
  readonly reason: SignatureReason;

  constructor(message: string, reason: SignatureReason = "mismatch") {
    super(message);
    this.name = "WebhookSignatureError";
    this.reason = reason;
  }
}

/** The delivery is authentic, but what it carries cannot be taken: a missing or malformed key, a body that is no JSON. */
export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode;

  constructor(code: DeliveryErrorCode, message: string) {
    super(message);
    this.name = "DeliveryError";
    this.code = code;
  }
}

export type DeliveryErrorCode = "key-missing" | "key-malformed" | "key-length" | "payload-malformed" | "payload-invalid";
