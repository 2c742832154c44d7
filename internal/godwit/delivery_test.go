package godwit

import (
	"testing"
	"time"
)

func TestStateChangesOfADelivery(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	before, later := now.Add(-time.Hour), now.Add(time.Hour)
	run := Run{Trigger: TriggerAccept, Attempts: 3, FirstAt: before, Refreshed: true}
	waiting := Delivery{Status: DeliveryPending, Reason: ReasonStatus, Attempts: 7, LastStatus: 503, DueAt: later, CreatedAt: before, UpdatedAt: before, Run: run}
	with := func(d Delivery, change func(*Delivery)) Delivery { change(&d); return d }
	for name, c := range map[string]struct {
		from   Delivery
		change func(*Delivery)
		want   func(*Delivery) // except for UpdatedAt
	}{
		"a waiting one moves up":        {waiting, func(d *Delivery) { d.Requeue(TriggerManual, "key_1", now) }, func(d *Delivery) { d.DueAt = now }},
		"one that is due stays due":     {with(waiting, func(d *Delivery) { d.DueAt = before }), func(d *Delivery) { d.Requeue(TriggerManual, "key_1", now) }, func(*Delivery) {}},
		"a finished one runs again":     {with(waiting, func(d *Delivery) { d.Status, d.DueAt = DeliveryAccepted, time.Time{} }), func(d *Delivery) { d.Requeue(TriggerReplay, "key_1", now) }, again(now)},
		"a cancelled one runs again":    {with(waiting, func(d *Delivery) { d.Status = DeliveryCancelled }), func(d *Delivery) { d.Requeue(TriggerReplay, "key_1", now) }, again(now)},
		"a dead one runs again":         {with(waiting, func(d *Delivery) { d.Status = DeliveryExhausted }), func(d *Delivery) { d.Requeue(TriggerReplay, "key_1", now) }, again(now)},
		"cancelled":                     {waiting, func(d *Delivery) { d.Cancel(ReasonCancelled, now) }, ended(DeliveryCancelled, ReasonCancelled)},
		"cancelled, its endpoint gone":  {waiting, func(d *Delivery) { d.Cancel(ReasonEndpointDeleted, now) }, ended(DeliveryCancelled, ReasonEndpointDeleted)},
		"past its retention":            {waiting, func(d *Delivery) { d.Expire(now) }, ended(DeliveryExhausted, ReasonRetention)},
		"after an attempt, to be tried": {waiting, attempted(now, Decision{Status: DeliveryPending, Reason: ReasonStatus, At: later, Trigger: TriggerRetry}, 500), tried(DeliveryPending, later, 500)},
		"after the last attempt":        {waiting, attempted(now, Decision{Status: DeliveryAccepted, Reason: ReasonStatus}, 200), tried(DeliveryAccepted, time.Time{}, 200)},
	} {
		got, want := c.from, c.from
		c.change(&got)
		want.UpdatedAt = now
		c.want(&want)
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	first := Delivery{Status: DeliveryPending}
	first.Attempted(before)
	first.Attempted(now)
	if first.Attempts != 2 || first.Run != (Run{Attempts: 2, FirstAt: before}) {
		t.Errorf("after two attempts: %+v", first)
	}
	first.Follow(&Decision{Status: DeliveryPending, Trigger: TriggerRefresh, At: now}, 401, now)
	first.Follow(&Decision{Status: DeliveryPending, Trigger: TriggerRetry, At: later}, 503, now)
	if !first.Run.Refreshed {
		t.Error("the one refresh of a run was forgotten")
	}
}

func again(now time.Time) func(*Delivery) {
	return func(d *Delivery) {
		d.Status, d.Reason, d.DueAt, d.Run = DeliveryPending, "", now, Run{Trigger: TriggerReplay, Actor: "key_1"}
	}
}

func ended(status DeliveryStatus, reason Reason) func(*Delivery) {
	return func(d *Delivery) { d.Status, d.Reason, d.DueAt = status, reason, time.Time{} }
}

func attempted(now time.Time, decision Decision, status int) func(*Delivery) {
	return func(d *Delivery) {
		d.Attempted(now)
		d.Follow(&decision, status, now)
	}
}

func tried(status DeliveryStatus, due time.Time, code int) func(*Delivery) {
	return func(d *Delivery) {
		d.Status, d.DueAt, d.LastStatus, d.Attempts = status, due, code, 8
		d.Run.Attempts = 4
	}
}
