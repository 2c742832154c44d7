package apply

import "testing"

// No two objects share the variable of a secret, and the name of a variable follows from the object alone.
func TestVariablesAreApart(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct {
		environment, tenant, id string
		parts                   []string
	}{
		{"demo", "acme", "orders", []string{"token"}},
		{"demo", "a-b", "c", []string{"token"}},
		{"demo", "a", "b-c", []string{"token"}},
		{"demo-a", "b", "c", []string{"token"}},
		{"demo", "a.b", "c", []string{"token"}},
		{"demo", "A-b", "c", []string{"token"}},
		{"demo", "a_b", "c", []string{"token"}},
		{"demo", "a", "c", []string{"header", "X-A"}},
		{"demo", "a", "c", []string{"header", "X_A"}},
		{"demo", "ACME", "orders", []string{"token"}},
		{"demo", "a", "c-header", []string{"token"}},
		{"demo", "a", "c", []string{"header", "Token"}},
		{"demo", "a", "c", []string{"client_id"}},
		{"demo", "a", "c-client", []string{"id"}},
	} {
		f := &Found{Address: Address{Kind: endpoints, Environment: c.environment, Tenant: c.tenant, ID: c.id}}
		name := variable(f, c.parts...)[0].value.(string)
		who := c.environment + "/" + c.tenant + "/" + c.id + "/" + c.parts[len(c.parts)-1]
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s share %s", who, other, name)
		}
		seen[name] = who
	}
	if _, plain := seen["DEMO_ACME_ORDERS_TOKEN"]; !plain {
		t.Errorf("plain ids need no more: %v", seen)
	}
}
