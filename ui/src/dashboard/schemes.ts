/** How upstreams prove who they are, and how to set each of them up. */
export interface Scheme {
  readonly name: string;
  readonly label: string;
  readonly doc: string;
  /** The server makes the secret; else it is the upstream's and must be given. */
  readonly makes: boolean;
  /** What the credential is called at the upstream, if it gives one. */
  readonly secret?: string;
  /** The credential may be a public key, certificate or fingerprint. */
  readonly public?: string;
  /** The upstream chooses a key id or user name. */
  readonly named?: string;
  /** Deliveries bring no Idempotency-Key, so the source must adopt them. */
  readonly adopts: boolean;
  /** Steps at the upstream; {url} is the address. */
  readonly steps: readonly string[];
}

export const schemes: readonly Scheme[] = [
  {
    name: "github",
    label: "GitHub",
    doc: "X-Hub-Signature-256",
    makes: true,
    adopts: true,
    steps: [
      "In the repository or organisation open Settings, Webhooks, Add webhook.",
      "Payload URL: {url}",
      "Content type: application/json",
      "Secret: the one that was shown when the source was created, or a new one by Rotate.",
      "Choose the events and save. GitHub sends a ping at once; it must appear under Events.",
    ],
  },
  {
    name: "stripe",
    label: "Stripe",
    doc: "Stripe-Signature",
    makes: false,
    secret: "Signing secret (whsec_…)",
    adopts: true,
    steps: [
      "In the Stripe dashboard open Developers, Webhooks, Add destination.",
      "Endpoint URL: {url}",
      "Choose the events, create it, and reveal its signing secret.",
      "Give that secret to the source: on creation, or later by Rotate.",
      "Send a test event from the same page.",
    ],
  },
  {
    name: "shopify",
    label: "Shopify",
    doc: "X-Shopify-Hmac-Sha256",
    makes: false,
    secret: "Client secret of the app, or the secret of the store's webhooks",
    adopts: true,
    steps: [
      "In the admin open Settings, Notifications, Webhooks, Create webhook.",
      "Format: JSON. URL: {url}",
      "Give the secret that the page shows to the source, by Rotate.",
      "Send a test notification from the same page.",
    ],
  },
  {
    name: "slack",
    label: "Slack",
    doc: "X-Slack-Signature",
    makes: false,
    secret: "Signing secret",
    adopts: true,
    steps: [
      "At api.slack.com/apps open the app, Basic Information, and copy the signing secret into the source.",
      "Under Event Subscriptions set Request URL: {url}",
      "Choose the events and save.",
    ],
  },
  {
    name: "twilio",
    label: "Twilio",
    doc: "X-Twilio-Signature",
    makes: false,
    secret: "Auth token",
    adopts: true,
    steps: ["Copy the auth token of the Twilio account into the source.", "At the number or messaging service set the webhook to HTTP POST {url}", "The signature covers the address: behind a proxy, set public-url of this server to the address that Twilio calls."],
  },
  {
    name: "paypal",
    label: "PayPal",
    doc: "PAYPAL-TRANSMISSION-SIG, with a certificate that you give",
    makes: false,
    public: "Certificate of PayPal's signing key, in PEM",
    adopts: true,
    steps: ["In the developer dashboard open the app and add a webhook with the URL {url}", "Copy the webhook's id into the source's setting webhook_id.", "Give PayPal's signing certificate to the source."],
  },
  {
    name: "standard-webhooks",
    label: "Standard Webhooks",
    doc: "webhook-signature, v1 and v1a",
    makes: true,
    public: "Public key (whpk_…)",
    adopts: true,
    steps: ["At the sender register the endpoint {url}", "Give it the secret (whsec_…) that was shown when the source was created, or give the sender's own secret or public key (whpk_…) to the source."],
  },
  {
    name: "eds",
    label: "Event Delivery (HTTP Message Signatures)",
    doc: "RFC 9421, as Godwit itself delivers",
    makes: true,
    public: "Ed25519 public key in base64",
    named: "Key id of the upstream's signatures",
    adopts: false,
    steps: ["At the upstream register the endpoint {url}", "Signatures must have the key id of the credential, and requests an Idempotency-Key.", "If the upstream is Godwit: create an endpoint of profile eds with this URL there."],
  },
  { name: "ojs", label: "Open Job Spec", doc: "X-OJS-Signature", makes: true, adopts: true, steps: ["At the upstream register the webhook {url}", "Give it the secret that was shown when the source was created."] },
  { name: "cybercube", label: "CYBERCUBE", doc: "X-Webhook-Signature", makes: true, adopts: true, steps: ["At the upstream register the webhook {url}", "Give it the secret that was shown when the source was created."] },
  {
    name: "bearer",
    label: "Bearer token",
    doc: "a token in Authorization, over TLS",
    makes: true,
    adopts: false,
    steps: ["The upstream posts to {url}", "with the header Authorization: Bearer and the token that was shown when the source was created,", "and with an Idempotency-Key for each event. It needs https."],
  },
  {
    name: "basic",
    label: "Name and password",
    doc: "HTTP Basic, over TLS",
    makes: true,
    named: "User name",
    adopts: false,
    steps: ["The upstream posts to {url}", "with HTTP Basic authentication: the name and password of the credential,", "and with an Idempotency-Key for each event. It needs https."],
  },
  {
    name: "mtls",
    label: "Client certificate",
    doc: "mutual TLS",
    makes: false,
    public: "SHA-256 fingerprint of the certificate",
    adopts: false,
    steps: ["This server must ask for client certificates (client-certificates) and serve https itself.", "The upstream posts to {url} with the certificate whose fingerprint the source has,", "and with an Idempotency-Key for each event."],
  },
];

export function schemeOf(name: string): Scheme | undefined {
  return schemes.find((s) => s.name === name);
}
