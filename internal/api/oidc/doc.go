// Package oidc serves the steps of a sign-in by OpenID Connect that a browser walks through: start, callback, the choice between several places, and the way to
// sign out at the provider. They are pages of the dashboard, and answer people; programs use API keys.
package oidc
