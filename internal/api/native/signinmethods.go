package native

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/management"
)

// SignInMethod is a way to sign in to the dashboard.
type SignInMethod struct {
	Kind       string `json:"kind" enum:"api_key,oidc"`
	Name       string `json:"name" doc:"What a person chooses by, such as the name of the identity provider"`
	StartURL   string `json:"start_url,omitempty" doc:"oidc: the page that begins the sign-in. Its parameter return names the page of the dashboard to open afterwards, as in ?return=/ui/events"`
	SignOutURL string `json:"sign_out_url,omitempty" doc:"oidc: the page that leads to the provider's own sign-out, if it is known to have one"`
}

type signInMethodsOutput struct {
	Body struct {
		Items []SignInMethod `json:"items"`
	} `nameHint:"SignInMethods"`
}

var signInMethodsDoc = huma.Operation{
	OperationID: "list-sign-in-methods", Summary: "List the ways to sign in", Description: "The ways in which people can sign in to the dashboard of this server.",
}

func (h *sessionHandlers) methods(context.Context, *management.Caller, *struct{}) (*signInMethodsOutput, error) {
	out := &signInMethodsOutput{}
	out.Body.Items = []SignInMethod{{Kind: "api_key", Name: "API key"}}
	if provider := h.provider(); provider != nil {
		out.Body.Items = append(out.Body.Items, *provider)
	}
	return out, nil
}
