package management

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const svgSpace = "http://www.w3.org/2000/svg"

// svgElements are the elements that a drawing may have. None runs script, loads anything, changes attributes of others (set, animate) or holds rules of style.
var svgElements = wordSet(`svg g defs symbol use title desc switch path rect circle ellipse line polyline polygon text tspan textPath
	linearGradient radialGradient stop pattern clipPath mask marker filter
	feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG
	feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// checkSVG accepts drawings that hold no script and load nothing. Pages show the drawing as an image, where script does not run and nothing is loaded; this is a
// second wall, for a copy that is opened by itself. It lists what is allowed: a list of what is dangerous is never complete.
func checkSVG(content []byte) error {
	d := xml.NewDecoder(bytes.NewReader(content))
	depth, roots := 0, 0
	for {
		begins := d.InputOffset()
		token, err := d.Token()
		if err == io.EOF && roots == 1 {
			return nil
		}
		if err != nil {
			return errors.New("it is not well-formed XML in UTF-8")
		}
		switch t := token.(type) {
		case xml.Directive:
			return errors.New("it has a DOCTYPE or another declaration; remove it")
		case xml.ProcInst:
			if t.Target != "xml" || begins != 0 {
				return fmt.Errorf("it has a processing instruction %.40q; remove it", t.Target)
			}
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errors.New("it has text outside of its first element")
			}
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth == 0 {
				if roots++; roots > 1 || t.Name.Local != "svg" {
					return errors.New("its first element is not svg, or not the only one")
				}
			}
			depth++
			if err := checkSVGElement(&t); err != nil {
				return err
			}
		}
	}
}

func checkSVGElement(t *xml.StartElement) error {
	if t.Name.Space != svgSpace {
		return fmt.Errorf("its element %.40q is not in the namespace %s; save it as plain SVG", t.Name.Local, svgSpace)
	}
	if !svgElements[t.Name.Local] {
		return fmt.Errorf("it has an element %.40q, which a logo must not have; save it as plain SVG without style sheets, scripts, animations and embedded images", t.Name.Local)
	}
	for _, a := range t.Attr {
		if err := checkSVGAttribute(&a); err != nil {
			return err
		}
	}
	return nil
}

// checkSVGAttribute refuses attributes that run script or name another document.
func checkSVGAttribute(a *xml.Attr) error {
	name, value := strings.ToLower(a.Name.Local), strings.ToLower(a.Value)
	switch {
	case a.Name.Space == "xmlns" || a.Name.Space == "" && name == "xmlns":
		return nil // a declaration names a namespace and loads nothing
	case strings.HasPrefix(name, "on"):
		return fmt.Errorf("it has an attribute %.40q, which runs script", a.Name.Local)
	case name == "base" || name == "src" || name == "href" && !strings.HasPrefix(value, "#"):
		return fmt.Errorf("it has an attribute %.40q that names another document; only references within it, as in #a, are allowed", a.Name.Local)
	case !ownReferences(value):
		return fmt.Errorf("its attribute %.40q refers to another document, or has escapes or comments of CSS; only url(#a) is allowed", a.Name.Local)
	}
	return nil
}

// loading are parts of values that run script, or load without url(). Escapes and comments of CSS could hide one.
var loading = []string{`\`, "@", "/*", "image-set(", "image(", "src(", "cross-fade(", "script:", "data:"}

// ownReferences reports whether a value, which may be CSS, refers to nothing outside of the document.
func ownReferences(value string) bool {
	if slices.ContainsFunc(loading, func(part string) bool { return strings.Contains(value, part) }) {
		return false
	}
	for {
		_, rest, found := strings.Cut(value, "url(")
		if !found {
			return true
		}
		if value = strings.TrimLeft(rest, " \t\r\n\"'"); !strings.HasPrefix(value, "#") {
			return false
		}
	}
}
