package httpapi

import (
	"net/http"
	"time"
)

// A StepCookie keeps what a sign-in of several steps has to know at the next one. Its value is sealed.
type StepCookie struct {
	Name string
	Path string // of the steps; with https the cookie is sent to all paths
}

// Step returns the value of a step's cookie, or "".
func (b *Browser) Step(r *http.Request, c StepCookie) string {
	found := r.CookiesNamed(b.nameFor(r, c.Name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// SetStep returns the value of Set-Cookie that keeps a step's cookie for some time.
func (b *Browser) SetStep(r *http.Request, c StepCookie, value string, life time.Duration) string {
	return b.stepCookie(r, c, value, int(life.Seconds()))
}

// ClearStep returns the value of Set-Cookie that removes a step's cookie.
func (b *Browser) ClearStep(r *http.Request, c StepCookie) string { return b.stepCookie(r, c, "", -1) }

// stepCookie lets the cookie come along when another site leads back here (SameSite=Lax). With https its name has the prefix __Host-, which browsers accept for
// the path / alone: without the prefix another host of the domain could put its own sign-in into the browser, and the person would act in a foreign session.
func (b *Browser) stepCookie(r *http.Request, c StepCookie, value string, age int) string {
	path := c.Path
	if b.secure() {
		path = "/"
	}
	cookie := http.Cookie{Name: b.nameFor(r, c.Name), Value: value, Path: path, MaxAge: age, HttpOnly: true, Secure: b.secure(), SameSite: http.SameSiteLaxMode}
	return cookie.String()
}
