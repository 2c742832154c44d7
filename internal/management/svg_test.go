package management

import (
	"bytes"
	"regexp"
	"testing"
)

const drawing = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`

func TestDrawingsOfLogos(t *testing.T) {
	for _, content := range []string{
		drawing + `</svg>`,
		`<?xml version="1.0" encoding="UTF-8"?>` + "\n<!-- made by hand -->\n" + drawing + `<title>A &amp; B</title><path style="fill:#fff;stroke:none" d="M0 0h1v1z"/></svg>` + "\n",
		drawing + `<defs><linearGradient id="a"><stop offset="0"/></linearGradient></defs><rect fill="url(#a)" style="filter:url( '#b' )"/><use xlink:href="#a"/></svg>`,
		`<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:g/></s:svg>`,
	} {
		if err := checkSVG([]byte(content)); err != nil {
			t.Errorf("%s: %v", content, err)
		}
	}
	for name, content := range map[string]string{
		"nothing":                     ``,
		"text":                        `svg`,
		"an open element":             drawing,
		"two drawings":                drawing + `</svg>` + drawing + `</svg>`,
		"text after it":               drawing + `</svg>a`,
		"another document":            `<html xmlns="http://www.w3.org/1999/xhtml"/>`,
		"no namespace":                `<svg/>`,
		"a namespace of HTML":         `<svg xmlns="http://www.w3.org/1999/xhtml"/>`,
		"HTML within":                 drawing + `<title xmlns="http://www.w3.org/1999/xhtml"/></svg>`,
		"script":                      drawing + `<script>alert(1)</script></svg>`,
		"script with a prefix":        drawing + `<a:script xmlns:a="http://www.w3.org/2000/svg">alert(1)</a:script></svg>`,
		"script in capitals":          drawing + `<SCRIPT/></svg>`,
		"a foreign object":            drawing + `<foreignObject/></svg>`,
		"a style sheet":               drawing + `<style>@import "https://evil.example/a.css"</style></svg>`,
		"set":                         drawing + `<set attributeName="href" to="javascript:alert(1)"/></svg>`,
		"animate":                     drawing + `<animate attributeName="href" values="javascript:alert(1)"/></svg>`,
		"animateTransform":            drawing + `<animateTransform/></svg>`,
		"an image":                    drawing + `<image href="#a"/></svg>`,
		"an image in a filter":        drawing + `<filter><feImage href="#a"/></filter></svg>`,
		"a link":                      drawing + `<a href="#a"/></svg>`,
		"an iframe":                   drawing + `<iframe/></svg>`,
		"a handler":                   drawing[:len(drawing)-1] + ` onload="alert(1)"></svg>`,
		"a handler in capitals":       drawing + `<g ONCLICK="alert(1)"/></svg>`,
		"a handler with a prefix":     drawing + `<g a:onclick="alert(1)"/></svg>`,
		"use of another document":     drawing + `<use href="https://evil.example/a.svg#b"/></svg>`,
		"use without a scheme":        drawing + `<use xlink:href="//evil.example/a.svg#b"/></svg>`,
		"use of a data URL":           drawing + `<use href="data:image/svg+xml;base64,PHN2Zy8+#a"/></svg>`,
		"script in a reference":       drawing + `<use href=" javascript:alert(1)"/></svg>`,
		"a reference in entities":     drawing + `<use href="&#106;avascript:alert(1)"/></svg>`,
		"a base":                      drawing + `<g xml:base="https://evil.example/"/></svg>`,
		"a fill of another document":  drawing + `<g fill="url(https://evil.example/a.svg#b)"/></svg>`,
		"the same in quotes":          drawing + `<g fill="URL( '//evil.example/a.svg#b')"/></svg>`,
		"the same behind an own one":  drawing + `<g style="fill:url(#a);mask:url(//evil.example)"/></svg>`,
		"escapes of CSS":              drawing + `<g style="fill:u\72l(//evil.example)"/></svg>`,
		"comments of CSS":             drawing + `<g style="fill:u/**/rl(//evil.example)"/></svg>`,
		"an import":                   drawing + `<g style="@import '//evil.example'"/></svg>`,
		"an image set":                drawing + `<g style="mask-image:image-set('//evil.example' 1x)"/></svg>`,
		"a style sheet by processing": `<?xml-stylesheet href="https://evil.example/a.css"?>` + drawing + `</svg>`,
		"processing":                  drawing + `<?php echo 1 ?></svg>`,
		"a late declaration":          drawing + `</svg><?xml version="1.0"?>`,
		"a type":                      `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">` + drawing + `</svg>`,
		"entities":                    `<!DOCTYPE svg [<!ENTITY a "b">]>` + drawing + `</svg>`,
		"an entity":                   drawing + `&a;</svg>`,
		"another encoding":            `<?xml version="1.0" encoding="UTF-7"?>` + drawing + `</svg>`,
		"UTF-16":                      "\xff\xfe<\x00s\x00v\x00g\x00/\x00>\x00",
	} {
		if checkSVG([]byte(content)) == nil {
			t.Errorf("%s is accepted: %s", name, content)
		}
	}
}

// dangers are tags and attributes that no accepted drawing may have, found in its text by other means than an XML parser.
var dangers = regexp.MustCompile(`(?i)<\s*([a-z0-9_]+:)?(script|style|set|animate[a-z]*|foreignobject|iframe|image|feimage|a|handler|embed|object)[\s/>]|<!doctype|<!entity|<\?[^x]|` +
	`<[^<>"']*([^<>"']|"[^"<]*"|'[^'<]*')*\s([a-z]+:)?on[a-z]+\s*=\s*["'][^<>]*>`)

func FuzzSVG(f *testing.F) {
	for _, content := range []string{
		drawing + `<path d="M0 0"/></svg>`, drawing + `<g fill="url(#a)" onload="a"/><script/></svg>`, `<?xml version="1.0"?>` + drawing + `<!-- a --><![CDATA[b]]></svg>`,
		drawing + `<use xlink:href="#a" style="fill:url(//a)"/></svg>`,
	} {
		f.Add([]byte(content))
	}
	comments := regexp.MustCompile(`(?s)<!--.*?-->|<!\[CDATA\[.*?\]\]>`)
	f.Fuzz(func(t *testing.T, content []byte) {
		if checkSVG(content) != nil {
			return
		}
		if !bytes.Contains(content, []byte("svg")) {
			t.Errorf("%q is taken for an image", content)
		}
		if found := dangers.Find(comments.ReplaceAll(content, nil)); found != nil {
			t.Errorf("%q has %q", content, found)
		}
	})
}
