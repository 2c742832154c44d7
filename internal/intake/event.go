package intake

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// An Event is an event as a door parsed it.
type Event struct {
	Type        string
	ContentType string
	Attributes  map[string]string
	// Key is the idempotency key of every attempt to deliver the event. If empty, the engine generates one.
	Key string
	// Body is stored and sent. The slice is kept, not copied.
	Body []byte
	// Compose, when not nil, completes the event after it got its id and time; see engine.Publication.
	Compose func(*godwit.Event)
	// Payload is checked against the size limit and the tenant's schemas, and PayloadType is its media type. In an envelope it
	// is the member data. Nil means Body; no PayloadType means ContentType.
	Payload     []byte
	PayloadType string
	// Received must be equal, byte for byte, in a repeat, and so must ReceivedType, its media type. Nil means Body and
	// ContentType; then the type and the attributes must be equal too, because they are not part of the body.
	Received     []byte
	ReceivedType string

	Format      string // see godwit.Event
	SourceID    string // the producer's id
	OccurredAt  time.Time
	KeptHeaders []godwit.KeptHeader
	Origin      godwit.Origin
}

func (e *Event) payload() []byte {
	if e.Payload != nil {
		return e.Payload
	}
	return e.Body
}

// An Admission is an event that satisfies every rule. Only Admit makes one.
type Admission struct {
	publication engine.Publication
	admitted    bool
}

// Admit checks an event against every rule. Its error is a *problem.Problem that names the fields: type, attributes.NAME,
// data and fields within data. A repeat that r recognises is not checked against the tenant's catalogue again.
func (in *Intake) Admit(ctx context.Context, p Producer, e *Event, r *Repeat) (Admission, error) {
	if err := in.checkForm(e); err != nil {
		return Admission{}, err
	}
	if err := checkTenantPayload(p.Tenant, e); err != nil && !in.known(ctx, r) {
		return Admission{}, err
	}
	if err := in.checkCatalogue(ctx, p, e, r); err != nil {
		return Admission{}, err
	}
	return Admission{admitted: true, publication: engine.Publication{
		Type: e.Type, ContentType: e.ContentType, Body: e.Body, Compose: e.Compose, Attributes: e.Attributes, Key: e.Key,
		Format: e.Format, SourceID: e.SourceID, OccurredAt: e.OccurredAt, KeptHeaders: e.KeptHeaders, Origin: e.Origin,
	}}, nil
}

// checkForm checks an event against the rules that are the same for all tenants.
func (in *Intake) checkForm(e *Event) error {
	if err := CheckType(e.Type); err != nil {
		return err
	}
	if err := checkAttributes(e.Attributes); err != nil {
		return err
	}
	if int64(len(e.payload())) > in.cfg.MaxPayload {
		return problem.TooLarge.In("data", "is over the limit of %d bytes", in.cfg.MaxPayload)
	}
	return nil
}

// checkTenantPayload checks the size of a payload against the tenant's own limit.
func checkTenantPayload(t *godwit.Tenant, e *Event) error {
	if limit := t.Limits.PayloadBytes; limit > 0 && int64(len(e.payload())) > limit {
		return problem.TooLarge.In("data", "is over the tenant's limit payload_bytes of %d bytes", limit)
	}
	return nil
}

func checkAttributes(attributes map[string]string) error {
	if len(attributes) > godwit.MaxAttributes {
		return problem.Invalid.In("attributes", "must have at most %d members", godwit.MaxAttributes)
	}
	for name, value := range attributes {
		if why := management.ValidAttributeName(name); why != "" {
			return problem.Invalid.In("attributes."+clip(name), "name %s", why)
		}
		if why := management.ValidAttributeValue(value); why != "" {
			return problem.Invalid.In("attributes."+name, "%s", why)
		}
	}
	return nil
}

// clip shortens a name that a producer sent, so that the response that quotes it stays short.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "?")
	if len(name) <= godwit.MaxAttributeName {
		return name
	}
	return strings.ToValidUTF8(name[:godwit.MaxAttributeName], "") + "…"
}

// checkCatalogue checks an event against the tenant's catalogue, if the tenant has enabled that.
func (in *Intake) checkCatalogue(ctx context.Context, p Producer, e *Event, r *Repeat) error {
	if p.Tenant.Validation == godwit.ValidateNone {
		return nil
	}
	refusal, err := in.refusal(ctx, p.Tenant, e)
	if err != nil || refusal == nil || in.known(ctx, r) {
		return err
	}
	return refusal
}

// refusal returns what the catalogue of a tenant refuses an event for; nil if it accepts the event.
func (in *Intake) refusal(ctx context.Context, t *godwit.Tenant, e *Event) (*problem.Problem, error) {
	wrong, err := in.cfg.Catalogue.Check(ctx, t, catalogue.Event{
		Type: e.Type, ContentType: cmp.Or(e.PayloadType, e.ContentType), Payload: e.payload(),
	})
	if err != nil || len(wrong) == 0 {
		return nil, err
	}
	refusal := problem.Invalid.With("the event does not fit the tenant's catalogue of event types")
	for _, f := range wrong {
		refusal.Errors = append(refusal.Errors, problem.Field{Field: f.Field, Detail: f.Detail})
	}
	return refusal, nil
}
