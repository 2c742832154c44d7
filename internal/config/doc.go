// Package config is the one definition of what can be set, and the way from there to values.
//
//	Config (struct, comments, tags) ─┬─► flags and their help    (kong)
//	                                 ├─► GODWIT_… environment ─┐
//	                                 ├─► keys of the YAML file ─┴─► Source, a kong resolver: flag > environment > file > default
//	                                 └─► `godwit config`, docs/configuration.md
//
// It opens nothing that a setting names, and a value marked secret is never printed.
package config
