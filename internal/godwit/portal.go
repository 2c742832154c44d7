package godwit

// Portal says how the portal of an environment looks to the people of its tenants, and which pages may show it in a frame.
type Portal struct {
	// AllowedOrigins are those of pages that may frame it. Empty: none may.
	AllowedOrigins []string `json:"allowed_origins,omitempty"`
	Theme          Theme    `json:"theme,omitzero"`
}

// A Theme is the look of a portal. What is empty has the portal's own look.
type Theme struct {
	Light   Palette    `json:"light,omitzero" doc:"Colours of the light look"`
	Dark    Palette    `json:"dark,omitzero" doc:"Colours of the dark look"`
	Font    string     `json:"font,omitempty" doc:"A list of font families, as in CSS" example:"Inter, system-ui, sans-serif"`
	Radius  *int       `json:"radius,omitempty" doc:"Radius of corners in pixels, 0 to 16"`
	Logo    string     `json:"logo,omitempty" doc:"A PNG or SVG image as a data URL in base64, at most 32 KiB"`
	Favicon string     `json:"favicon,omitempty" doc:"As logo"`
	Words   ThemeWords `json:"words,omitzero"`
}

// A Palette has the colours of a look, as #rrggbb.
type Palette struct {
	Accent     string `json:"accent,omitempty" doc:"Buttons and links, as #rrggbb" example:"#0a66c2"`
	Background string `json:"background,omitempty"`
	Surface    string `json:"surface,omitempty" doc:"Tables and forms"`
	Text       string `json:"text,omitempty"`
	Muted      string `json:"muted,omitempty" doc:"Text of less weight"`
	Border     string `json:"border,omitempty"`
}

// ThemeWords replace words of the portal.
type ThemeWords struct {
	Title      string `json:"title,omitempty" example:"Acme webhooks"`
	Endpoints  string `json:"endpoints,omitempty"`
	EventTypes string `json:"event_types,omitempty"`
	Deliveries string `json:"deliveries,omitempty"`
	HelpURL    string `json:"help_url,omitempty" doc:"Where the help link leads: an https URL"`
}
