package app

import (
	"context"

	"github.com/godwit-hq/godwit/internal/api/native"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/telemetry"
)

// settings returns the configuration that the server runs with, for GET /v1/settings. Every setting of package config is in it.
func (a *apis) settings(ctx context.Context) (*native.Settings, error) {
	d, err := a.store.Describe(ctx)
	if err != nil {
		return nil, err
	}
	b := telemetry.Build()
	out := &native.Settings{
		Version: b.Version, Revision: b.Revision, Go: b.Go, Node: a.cfg.Node, StartedAt: a.started.UTC(),
		Store: native.StoreSettings{Backend: d.Backend, Version: d.Version, Schema: d.SchemaVersion, Location: d.Location, Durability: d.Durability},
	}
	defaults := config.Default()
	for _, s := range config.Settings() {
		o := native.Option{
			Name: s.Flag, Value: s.Show(&a.cfg), Default: s.Show(&defaults), Origin: string(a.d.Origins[s.Flag]), Description: s.Doc, Group: s.Group, Variable: s.Env, Key: s.Key,
			Secret: s.Secret != "",
		}
		switch {
		case o.Origin != "" && o.Origin != "default":
		case o.Value == o.Default:
			o.Origin = "default"
		default:
			o.Origin = "program" // godwit dev, or a value that the start worked out
		}
		out.Options = append(out.Options, o)
	}
	return out, nil
}
