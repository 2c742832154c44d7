package config

import (
	_ "embed"
	"encoding"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"reflect"
	"strings"
	"sync"
)

// A Setting describes one field of Config for users.
type Setting struct {
	Flag    string // without dashes
	Env     string
	Key     string // path in the file, joined with dots
	Default string // as written; empty when the comment says more
	Doc     string // ends with "Defaults to …"
	Group   string // type of the struct that holds the field
	Secret  string // "", "url" or "all"
	Type    reflect.Type
	index   []int
}

//go:embed config.go
var source []byte

// Settings lists every setting, in the order of the struct.
var Settings = sync.OnceValue(func() []Setting {
	docs, _ := comments()
	var all []Setting
	collect(reflect.TypeFor[Config](), "", "", nil, docs, &all)
	return all
})

// GroupDocs returns the comments of the groups, by type name.
func GroupDocs() map[string]string {
	_, groups := comments()
	return groups
}

func collect(t reflect.Type, prefix, key string, index []int, docs map[string]string, all *[]Setting) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		if _, embedded := f.Tag.Lookup("embed"); embedded {
			p := f.Tag.Get("prefix")
			k := key
			if p != "" {
				k += strings.TrimSuffix(p, "-") + "."
			}
			collect(f.Type, prefix+p, k, at, docs, all)
			continue
		}
		name := f.Tag.Get("name")
		*all = append(*all, Setting{
			Flag: prefix + name, Env: envName(prefix + name), Key: key + name,
			Default: f.Tag.Get("default"), Doc: docs[t.Name()+"."+f.Name], Group: t.Name(),
			Secret: f.Tag.Get("secret"), Type: f.Type, index: at,
		})
	}
}

func envName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// EnvPrefix begins the names of our environment variables.
const EnvPrefix = "GODWIT_"

// comments reads the doc comments of config.go: of fields by "Type.Field", of types by "Type".
var comments = sync.OnceValues(func() (fields, types map[string]string) {
	fields, types = map[string]string{}, map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", source, parser.ParseComments)
	if err != nil {
		return fields, types // the file compiled, so it parses
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			types[ts.Name.Name] = oneLine(gen.Doc.Text())
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					fields[ts.Name.Name+"."+name.Name] = oneLine(f.Doc.Text())
				}
			}
		}
	}
	return fields, types
})

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Value returns the setting's field in c.
func (s Setting) Value(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// Show renders the setting's value in c for people; secrets are hidden.
func (s Setting) Show(c *Config) string {
	text := render(s.Value(c))
	switch {
	case text == "" || s.Secret == "":
		return text
	case s.Secret == "url":
		return RedactURL(text)
	default:
		return "(set)"
	}
}

func render(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		var parts []string
		for i := range v.Len() {
			parts = append(parts, render(v.Index(i)))
		}
		return strings.Join(parts, ",")
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return ""
		}
		if v.Type().Name() == "Level" {
			return strings.ToLower(string(text))
		}
		return string(text)
	}
	return fmt.Sprint(v.Interface())
}

// RedactURL hides the password of a URL, wherever it is in the URL.
func RedactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" && strings.ContainsAny(text, "=@ ") { // a connection string of another form
		return "(set)"
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}
