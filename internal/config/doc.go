// Package config defines all settings in one place and reads their values.
//
//	Config (struct, comments, tags) ─┬─► flags and their help    (kong)
//	                                 ├─► GODWIT_… environment ─┐
//	                                 ├─► keys of the YAML file ─┴─► Source, a kong resolver: flag > environment > file > default
//	                                 └─► `godwit config`, docs/configuration.md
//
// The package opens no file or address that a setting names, and never prints a value that is marked secret.
package config
