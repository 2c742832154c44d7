// Package identity signs people in with an identity provider, by OpenID Connect.
//
//	browser ── start ──► provider's sign-in page ── code ──► callback
//	   │ cookie: state, nonce and PKCE verifier, sealed           │
//	   └──────────────────────────────────────────────────────────┤
//	                      code + verifier ──► provider: ID token  │ signature, issuer, audience, nonce, times
//	                                                              ▼
//	                                        groups ── grants ──► places where the person may act
//
// It is the authorization code flow with PKCE (S256). Whatever has to be known again at the callback is in a cookie that is sealed with the key
// ring, so that any node can take the callback and nothing is stored for sign-ins that people give up.
//
// A Provider reads the discovery document when it is needed: a server starts while its provider is down. The package knows neither sessions nor
// HTTP requests of browsers; those are in management and api/oidc.
package identity
