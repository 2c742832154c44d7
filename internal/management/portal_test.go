package management

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestOrigins(t *testing.T) {
	for _, origin := range []string{
		"https://app.example.com", "https://app.example.com:8443", "https://localhost", "http://localhost:3000", "http://127.0.0.1:5173", "https://[2001:db8::1]:8443",
		"http://[::1]", "https://xn--bcher-kva.example", "https://192.0.2.7",
	} {
		if err := checkOrigins([]string{origin}); err != nil {
			t.Errorf("%s: %v", origin, err)
		}
	}
	for _, origin := range []string{
		"", "*", "null", "https:", "https://", "https://*", "https://*.example.com", "https://App.example.com", "https://app.example.com/", "https://app.example.com/a", "https://app.example.com:443",
		"http://localhost:80", "http://app.example.com", "https://a@app.example.com", "https://app.example.com:", "https://app.example.com:0", "https://app.example.com:65536",
		"https://app.example.com:08443", "https://app.example.com https://evil.example", "https://app.example.com;script-src", "https://app.example.com,b", "ftp://example.com", "app.example.com",
		"https://bücher.example", "https://a..example", "https://-a.example", "https://app.example.com?", "https://app.example.com#", "https://app.example.com\nx", "'self'",
		"https://[2001:DB8::1]", "https://[2001:db8:0::1]", "https://" + strings.Repeat("a.", 200) + "example",
	} {
		if err := checkOrigins([]string{origin}); err == nil {
			t.Errorf("%q is accepted", origin)
		}
	}
	if err := checkOrigins([]string{"https://a.example", "https://a.example"}); err == nil {
		t.Error("an origin may be given twice")
	}
	if err := checkOrigins(make([]string, maxOrigins+1)); err == nil {
		t.Error("any number of origins may be given")
	}
}

// An error names the member, so that a form can show it there.
func TestThemeErrorsNameTheMember(t *testing.T) {
	svg := func(text string) string { return svgImage + base64.StdEncoding.EncodeToString([]byte(text)) }
	png := func(text string) string { return pngImage + base64.StdEncoding.EncodeToString([]byte(pngFirst+text)) }
	good := godwit.Theme{
		Light: godwit.Palette{Accent: "#0A66c2", Border: "#000000"}, Font: `Inter, "Segoe UI", sans-serif`, Radius: new(int), Logo: png(""),
		Favicon: svg(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/></svg>`),
		Words:   godwit.ThemeWords{Title: "Größe", HelpURL: "https://help.example.com/a?b=c"},
	}
	if err := checkPortal(&godwit.Portal{Theme: good}); err != nil {
		t.Fatal(err)
	}
	large, negative := 17, -1
	for _, c := range []struct {
		field string
		edit  func(*godwit.Theme)
	}{
		{"theme.light.accent", func(n *godwit.Theme) { n.Light.Accent = "red" }},
		{"theme.light.text", func(n *godwit.Theme) { n.Light.Text = "#fff" }},
		{"theme.dark.muted", func(n *godwit.Theme) { n.Dark.Muted = "#00000g" }},
		{"theme.dark.surface", func(n *godwit.Theme) { n.Dark.Surface = "#000000;" }},
		{"theme.font", func(n *godwit.Theme) { n.Font = "a; color: red" }},
		{"theme.font", func(n *godwit.Theme) { n.Font = "url(https://example.com/a)" }},
		{"theme.font", func(n *godwit.Theme) { n.Font = `"a` }},
		{"theme.font", func(n *godwit.Theme) { n.Font = strings.Repeat("a", maxFont+1) }},
		{"theme.radius", func(n *godwit.Theme) { n.Radius = &large }},
		{"theme.radius", func(n *godwit.Theme) { n.Radius = &negative }},
		{"theme.logo", func(n *godwit.Theme) { n.Logo = "https://example.com/logo.png" }},
		{"theme.logo", func(n *godwit.Theme) { n.Logo = "data:image/gif;base64,R0lGOD" }},
		{"theme.logo", func(n *godwit.Theme) { n.Logo = pngImage + "!" }},
		{"theme.logo", func(n *godwit.Theme) { n.Logo = pngImage + "AAAA" }},
		{"theme.logo", func(n *godwit.Theme) { n.Logo = png(strings.Repeat("a", maxImage)) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<html/>`) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(``) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<svg>`) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<svg><script/></svg>`) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<svg onload="a"/>`) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<svg><a href="javascript:a"/></svg>`) }},
		{"theme.favicon", func(n *godwit.Theme) { n.Favicon = svg(`<!DOCTYPE svg [<!ENTITY a "b">]><svg/>`) }},
		{"theme.words.title", func(n *godwit.Theme) { n.Words.Title = strings.Repeat("ö", maxWord+1) }},
		{"theme.words.endpoints", func(n *godwit.Theme) { n.Words.Endpoints = "a\nb" }},
		{"theme.words.help_url", func(n *godwit.Theme) { n.Words.HelpURL = "javascript:alert(1)" }},
		{"theme.words.help_url", func(n *godwit.Theme) { n.Words.HelpURL = "http://example.com/" }},
	} {
		bad := good
		c.edit(&bad)
		var named *godwit.FieldError
		if err := checkPortal(&godwit.Portal{Theme: bad}); !errors.As(err, &named) || named.Field != c.field {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
}

func FuzzOrigin(f *testing.F) {
	f.Add("https://app.example.com:8443")
	f.Fuzz(func(t *testing.T, origin string) {
		if checkOrigin("a", origin) == nil && strings.ContainsAny(origin, " ;,'\"\r\n\t*@?#") {
			t.Errorf("%q is taken for an origin", origin)
		}
	})
}
