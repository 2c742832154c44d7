package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/identity"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	choiceLife = 5 * time.Minute
	// maxSeats keeps the choice within the size of a cookie.
	maxSeats = 40
)

// choice is what a person may choose from. It is in a cookie of the browser that signed in.
type choice struct {
	Issuer  string          `json:"i"`
	Subject string          `json:"s"`
	Name    string          `json:"n"`
	Seats   []seat          `json:"p"`
	Return  string          `json:"r"`
	Before  identity.Before `json:"b,omitzero"`
	Until   time.Time       `json:"u"`
}

// seat is a place to choose, in few bytes.
type seat struct {
	Tenant [16]byte
	Scopes uint8 // a bit for each of godwit.AllScopes
}

func (s seat) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%x%02x", s.Tenant, s.Scopes), nil
}

func (s *seat) UnmarshalText(text []byte) error {
	if len(text) != 34 {
		return errors.New("not a seat")
	}
	for i := range s.Tenant {
		b, err := strconv.ParseUint(string(text[2*i:2*i+2]), 16, 8)
		if err != nil {
			return err
		}
		s.Tenant[i] = byte(b)
	}
	bits, err := strconv.ParseUint(string(text[32:]), 16, 8)
	s.Scopes = uint8(bits)
	return err
}

func seatOf(s *management.Seat) seat {
	packed := seat{Tenant: s.Tenant.ID}
	for i, scope := range godwit.AllScopes {
		if slices.Contains(s.Scopes, scope) {
			packed.Scopes |= 1 << i
		}
	}
	return packed
}

func (s seat) scopes() (list []godwit.Scope) {
	for i, scope := range godwit.AllScopes {
		if s.Scopes&(1<<i) != 0 {
			list = append(list, scope)
		}
	}
	return list
}

// choiceBound binds a choice to the list of scopes that its bits mean. A node of another version that has another list refuses it.
var choiceBound = func() string {
	names := make([]string, len(godwit.AllScopes))
	for i, s := range godwit.AllScopes {
		names[i] = string(s)
	}
	return "sign-in choice " + strings.Join(names, " ")
}()

// ask lets the person choose a place: a session acts in one.
func (h *handlers) ask(w http.ResponseWriter, r *http.Request, a *identity.Arrived, seats []management.Seat) error {
	if len(seats) > maxSeats {
		return &identity.Refusal{Reason: identity.TooManyGroups,
			Detail: fmt.Sprintf("Your groups give you access to %d places, and at most %d can be offered. The operator can grant you an environment instead of its tenants.", len(seats), maxSeats)}
	}
	c := choice{Issuer: a.User.Issuer, Subject: a.User.Subject, Name: a.User.Name, Return: a.Return, Before: a.Before, Until: h.Now().Add(choiceLife)}
	for i := range seats {
		c.Seats = append(c.Seats, seatOf(&seats[i]))
	}
	sealed, err := identity.Seal(h.Ring, c, choiceBound)
	if err != nil {
		return err
	}
	w.Header().Add("Set-Cookie", h.Browser.SetStep(r, choiceCookie, sealed, choiceLife))
	redirect(w, ChoicePath)
	return nil
}

var errNoChoice = &identity.Refusal{Reason: identity.NoFlow, Detail: "This browser has nothing to choose from, or took too long. Begin again."}

func (h *handlers) readChoice(r *http.Request) (*choice, error) {
	var c choice
	if err := identity.Open(h.Ring, h.Browser.Step(r, choiceCookie), &c, choiceBound); err != nil || !h.Now().Before(c.Until) {
		return nil, errNoChoice
	}
	return &c, nil
}

// offered is a line of the choice page.
type offered struct {
	Value  string
	Name   string
	Scopes string
}

// offer shows the places to choose from.
func (h *handlers) offer(w http.ResponseWriter, r *http.Request) error {
	c, err := h.readChoice(r)
	if err != nil {
		return err
	}
	var list []offered
	for _, s := range c.Seats {
		found, err := h.seat(r.Context(), s)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		names := make([]string, len(found.Scopes))
		for i, scope := range found.Scopes {
			names[i] = string(scope)
		}
		list = append(list, offered{Value: found.Tenant.ID.String(), Name: seatName(found), Scopes: strings.Join(names, ", ")})
	}
	h.showChoice(w, r, c.Name, list)
	return nil
}

func seatName(s *management.Seat) string {
	if s.Tenant.Home {
		return "Environment " + s.Environment.Name
	}
	return s.Tenant.Name + " (" + s.Environment.Name + ")"
}

// seat finds the place of a choice.
func (h *handlers) seat(ctx context.Context, s seat) (*management.Seat, error) {
	return h.Sessions.SeatAt(ctx, godwit.TenantID(s.Tenant), s.scopes())
}

// choose signs in at the place that was chosen.
func (h *handlers) choose(w http.ResponseWriter, r *http.Request) error {
	if err := h.Browser.CheckSignIn(r); err != nil {
		return err
	}
	c, err := h.readChoice(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<12)
	named := r.PostFormValue("place")
	i := slices.IndexFunc(c.Seats, func(s seat) bool { return godwit.TenantID(s.Tenant).String() == named })
	if i < 0 {
		return errNoChoice
	}
	s, err := h.seat(r.Context(), c.Seats[i])
	if errors.Is(err, store.ErrNotFound) {
		return errNoChoice
	}
	if err != nil {
		return err
	}
	w.Header().Add("Set-Cookie", h.Browser.ClearStep(r, choiceCookie))
	return h.signIn(w, r, godwit.NewUser(c.Issuer, c.Subject, c.Name), s, c.Before, c.Return)
}
