package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Origin says where a value came from.
type Origin string

// Source resolves kong's flags from the environment and the file, and records the origin of each value. It serves only the
// flags of Config: a command whose flags merely have the same names (`dev --listen`) marks them with `local:""`, because a
// developer's trial must not use the settings of a production server.
type Source struct {
	lookup  func(name string) (string, bool)
	path    string
	file    map[string]fileValue // by key
	loaded  bool
	origins map[string]Origin // by flag
}

// NewSource reads the environment with lookup, which is os.LookupEnv outside tests.
func NewSource(lookup func(string) (string, bool)) *Source {
	return &Source{lookup: lookup, origins: map[string]Origin{}}
}

// Apply makes the source part of a kong parser: it resolves values and fills in the help texts.
func (s *Source) Apply(k *kong.Kong) error {
	if err := kong.Resolvers(s).Apply(k); err != nil {
		return err
	}
	return kong.PostBuild(func(k *kong.Kong) error {
		describe(k.Model.Node)
		return nil
	}).Apply(k)
}

func describe(n *kong.Node) {
	for _, f := range n.Flags {
		if f.Tag.Has("local") {
			continue
		}
		if set, ok := byFlag(f.Name); ok {
			f.Help = set.Doc + " [" + set.Env + "]"
			f.Hidden = set.Secret == "all"
		} else if f.Name == "config" && f.Help == "" {
			docs, _ := comments()
			f.Help = docs["FileFlag.Config"] + " [" + EnvPrefix + "CONFIG]"
		}
	}
	for _, child := range n.Children {
		describe(child)
	}
}

func byFlag(name string) (Setting, bool) {
	for _, set := range Settings() {
		if set.Flag == name {
			return set, true
		}
	}
	return Setting{}, false
}

// Validate is part of kong.Resolver.
func (s *Source) Validate(*kong.Application) error { return nil }

// Resolve finds the value of a flag that the command line omits. It is part of kong.Resolver.
func (s *Source) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	set, ok := byFlag(flag.Name)
	if !ok || flag.Tag.Has("local") {
		return nil, nil
	}
	if !s.loaded {
		s.loaded = true
		if err := s.load(configFlag(ctx)); err != nil {
			return nil, err
		}
	}
	if v, ok := s.lookup(set.Env); ok && v != "" {
		s.origins[set.Flag] = Origin("environment " + set.Env)
		return v, nil
	}
	if v, ok := s.file[set.Key]; ok {
		s.origins[set.Flag] = Origin(fmt.Sprintf("file %s:%d", s.path, v.line))
		return v.value, nil
	}
	return nil, nil
}

func configFlag(ctx *kong.Context) string {
	for _, f := range ctx.Flags() {
		if f.Name == "config" {
			if path, ok := ctx.FlagValue(f).(string); ok {
				return path
			}
		}
	}
	return ""
}

func (s *Source) load(path string) error {
	if path == "" {
		path, _ = s.lookup(EnvPrefix + "CONFIG")
	}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read config file: %w", err)
	}
	s.path = path
	s.file, err = parseFile(path, text)
	return err
}

// Origins returns the origin of each setting's value, after ctx was parsed. It refuses a secret on the command line.
func (s *Source) Origins(ctx *kong.Context) (map[string]Origin, error) {
	out := map[string]Origin{}
	for _, set := range Settings() {
		out[set.Flag] = "default"
		if from, ok := s.origins[set.Flag]; ok {
			out[set.Flag] = from
		}
	}
	for _, p := range ctx.Path {
		if p.Flag == nil || p.Resolved || p.Flag.Tag.Has("local") {
			continue
		}
		set, ok := byFlag(p.Flag.Name)
		if !ok {
			continue
		}
		if set.Secret == "all" {
			return nil, fmt.Errorf("--%s: a command line is open to every user of the machine; use %s or a file", set.Flag, set.Env)
		}
		out[set.Flag] = Origin("flag --" + set.Flag)
	}
	return out, nil
}

// UnknownEnv lists variables that have our prefix but name no setting. They are most likely misspelt.
func UnknownEnv(environ []string) []string {
	known := map[string]bool{EnvPrefix + "CONFIG": true, EnvPrefix + "KEY": true, EnvPrefix + "URL": true, EnvPrefix + "CONTEXT": true, EnvPrefix + "TENANT": true}
	for _, set := range Settings() {
		known[set.Env] = true
	}
	var unknown []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, EnvPrefix) && !known[name] && !strings.HasPrefix(name, EnvPrefix+"TEST_") && name != EnvPrefix+"TRACE_DIR" {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Default returns the configuration when nothing is set.
func Default() Config {
	var c Config
	k, err := kong.New(&c)
	if err == nil {
		_, err = k.Parse(nil)
	}
	if err != nil {
		panic("config: defaults do not parse: " + err.Error()) // every test that reads the configuration would fail
	}
	return c
}
