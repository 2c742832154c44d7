package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A handover lists the events of one commit whose deliveries were claimed in it. The engine holds these deliveries and usually
// records their result within milliseconds. Until then they have no row; the row of their event lists them.
//
//	accept ──► event with its recipients, one handover a commit ──► result ──► row, complete with the first attempt
//	                                 │
//	                                 └─► the claim ends, or it takes long ──► row, as if it had had one from the beginning
//
// So an ordinary delivery is written only once.
type handover struct {
	first, last int64 // numbers of the events
	deliveries  []godwit.DeliveryID
	open        int // number of deliveries without a row
}

// handed is the writer's cache of handovers. The database holds all of it; the writer reads it again when the store opens,
// when another connection has written, and after a failed transaction.
type handed struct {
	deliveries map[godwit.DeliveryID]handedDelivery // those without a row
	handovers  []*handover                          // oldest first
	events     int64                                // number of events that the handovers span
	settled    bool                                 // some handovers may have no open deliveries
}

// handedEvents bounds how many events are searched for deliveries without a row. Beyond that the oldest deliveries get their
// rows.
const handedEvents = 10_000

type handedDelivery struct {
	recipient
	tenant  godwit.TenantID
	event   godwit.EventID
	created int64
	in      *handover
}

func (d *handedDelivery) delivery() *godwit.Delivery {
	return newDelivery(&godwit.Event{ID: d.event, TenantID: d.tenant, CreatedAt: fromMicros(d.created)}, &d.recipient)
}

func (h *handed) add(in *handover, d handedDelivery) {
	if _, twice := h.deliveries[d.id]; twice {
		return
	}
	d.in = in
	h.deliveries[d.id] = d
	in.deliveries = append(in.deliveries, d.id)
	in.open++
}

// remove forgets a delivery that gets its row.
func (h *handed) remove(d *handedDelivery) {
	delete(h.deliveries, d.id)
	d.in.open--
	h.settled = h.settled || d.in.open == 0
}

func (h *handed) keep(in *handover) {
	h.handovers = append(h.handovers, in)
	h.events += in.span()
}

func (in *handover) span() int64 { return in.last - in.first + 1 }

// store stores the handover of a commit.
func (h *handed) store(c *conn, in *handover) error {
	if in.open == 0 {
		return nil
	}
	h.keep(in)
	_, err := c.exec("INSERT INTO handovers (first, last) VALUES (?, ?)", in.first, in.last)
	return err
}

// settle removes handovers without open deliveries. If the handovers span too many events, it first writes the rows of the
// oldest.
func (h *handed) settle(c *conn) error {
	for i, span := 0, h.events; span > handedEvents && i < len(h.handovers); i++ {
		for _, id := range h.handovers[i].deliveries {
			if d, ok := h.deliveries[id]; ok {
				if err := h.writeOut(c, &d, d.epoch, d.created); err != nil {
					return err
				}
			}
		}
		span -= h.handovers[i].span()
	}
	if !h.settled {
		return nil
	}
	h.settled = false
	open := h.handovers[:0]
	for _, in := range h.handovers {
		if in.open > 0 {
			open = append(open, in)
			continue
		}
		h.events -= in.span()
		if _, err := c.exec("DELETE FROM handovers WHERE first = ?", in.first); err != nil {
			return err
		}
	}
	clear(h.handovers[len(open):])
	h.handovers = open
	return nil
}

// writeOut writes the row of a handed-over delivery; an epoch of 0 ends its claim.
func (h *handed) writeOut(c *conn, d *handedDelivery, epoch, due int64) error {
	h.remove(d)
	row := d.delivery()
	row.DueAt = fromMicros(due)
	return insertDelivery(c, row, epoch)
}

// load reads all handovers from the database.
func (h *handed) load(c *conn) error {
	*h = handed{deliveries: map[godwit.DeliveryID]handedDelivery{}, settled: true}
	ctx := context.Background()
	there, err := c.one(ctx, "SELECT 1 FROM sqlite_schema WHERE name = 'handovers'", nil, nil)
	if err != nil || !there {
		return err // before the migration
	}
	err = c.each(ctx, "SELECT first, last FROM handovers ORDER BY first", nil, func(r *rows) error {
		h.keep(&handover{first: r.int(0), last: r.int(1)})
		return nil
	})
	if err != nil {
		return err
	}
	byFirst := make(map[int64]*handover, len(h.handovers))
	for _, in := range h.handovers {
		byFirst[in.first] = in
	}
	all := func(*godwit.Delivery) bool { return true }
	return eachHanded(ctx, c, all, func(d *godwit.Delivery, r *recipient, first int64) {
		h.add(byFirst[first], handedDelivery{recipient: *r, tenant: d.TenantID, event: d.EventID, created: micros(d.CreatedAt)})
	})
}

// handedDeliveries lists matching deliveries without a row. It reads the database, since readers have no access to the
// writer's cache.
func handedDeliveries(ctx context.Context, c *conn, fits func(*godwit.Delivery) bool) (ds []godwit.Delivery, err error) {
	err = eachHanded(ctx, c, fits, func(d *godwit.Delivery, _ *recipient, _ int64) { ds = append(ds, *d) })
	return ds, err
}

const handedOver = `SELECT e.tenant_id, e.id, e.type, e.created_at, e.deliveries, h.first
	FROM handovers h CROSS JOIN events e ON e.n BETWEEN h.first AND h.last`

// eachHanded calls fn with each matching delivery without a row, and with the first event of its handover.
func eachHanded(ctx context.Context, c *conn, fits func(*godwit.Delivery) bool, fn func(*godwit.Delivery, *recipient, int64)) error {
	return c.each(ctx, handedOver, nil, func(r *rows) error {
		e := godwit.Event{TenantID: r.id(0), ID: r.id(1), Type: r.text(2), CreatedAt: r.time(3)}
		all, err := unpackRecipients(r.blob(4))
		if err != nil {
			return err
		}
		for i := range all {
			d := newDelivery(&e, &all[i])
			if all[i].epoch == 0 || !fits(d) {
				continue
			}
			there, err := c.one(ctx, "SELECT 1 FROM deliveries WHERE tenant_id = ? AND id = ?", ids(e.TenantID[:], d.ID[:]), nil)
			if err != nil {
				return err
			}
			if !there {
				fn(d, &all[i], r.int(5))
			}
		}
		return nil
	})
}
