/** Why a request is not authentic. The values are stable and fit for logs and metrics. */
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
 * The request is not authentic. Verification throws this class for any content of the headers (OJS-SIG-10, CCW-SDK-5);
 * another error means that verification itself failed.
 */
export class WebhookSignatureError extends Error {
  readonly reason: SignatureReason;

  constructor(message: string, reason: SignatureReason = "mismatch") {
    super(message);
    this.name = "WebhookSignatureError";
    this.reason = reason;
  }
}

/** The delivery is authentic but not acceptable: a missing or malformed key, a body that is not JSON. */
export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode;

  constructor(code: DeliveryErrorCode, message: string) {
    super(message);
    this.name = "DeliveryError";
    this.code = code;
  }
}

export type DeliveryErrorCode = "key-missing" | "key-malformed" | "key-length" | "payload-malformed" | "payload-invalid";
