// Package httpsig signs and verifies HTTP requests with HTTP Message Signatures
// (RFC 9421) and protects their content with Content-Digest (RFC 9530).
//
//	sender                                      receiver
//	ContentDigest(body) ─► Content-Digest       Verifier.Verify(req, body)
//	NewSigner(components...)  once               ├ parse Signature-Input, Signature
//	  └ SignRequest(req, Params) per attempt     ├ required components covered?
//	     ├ component lines ┐                     ├ key by keyid, algorithm fits?
//	     ├ params line     ├ signature base      ├ same signature base, same key
//	     └ one signature per key                 ├ Content-Digest matches the body
//	        ─► Signature-Input, Signature        ├ created, expires within limits
//	                                             └ nonce not seen before
//
// Two algorithms are supported, hmac-sha256 and ed25519: one for a shared secret,
// one for a published key. The algorithm belongs to the [Key]; an "alg" parameter
// in a message can only confirm it, never choose it (RFC 9421, section 7.3.6).
//
// A component is named as in RFC 9421: "@method", "content-type", or with
// parameters as a structured field item, `"@query-param";name="id"`. Every derived
// component of section 2.2 and the field parameters sf, key, bs and tr are
// supported; anything else is an error, never a guess, because a wrong base is
// a signature over something else.
//
// "@target-uri" is the address as it goes over the wire: the scheme, the Host
// field and the request target, not normalised further. Sender and receiver then
// agree whenever the sender's URL has a lower-case host and no default port.
// "@authority" is normalised as section 2.2.3 demands.
//
// The package deliberately does not sign or verify responses, negotiate
// signatures (Accept-Signature), fetch keys, keep nonces, or make random values:
// time, nonce and keys are handed in. It reads no request body; the caller hands
// in the exact bytes sent or received.
package httpsig
