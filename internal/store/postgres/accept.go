package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// newEvent is an event to store, or a stored event that gains deliveries.
type newEvent struct {
	event      *godwit.Event
	deliveries []store.NewDelivery
	later      *store.Fanout             // of an event of a command or a broadcast; nil if it has none
	record     *godwit.IdempotencyRecord // of its accept; nil if it has none
	first      godwit.EventID            // first event of its accept
	stored     bool                      // already stored; it only gains the deliveries
	part       *store.FanoutPart         // of its accept; nil if the accept is not part of a fan-out
	broadcast  *store.BroadcastPart      // of its accept; nil if the accept is not part of a broadcast
}

// keyedAccept is an accept with a record.
type keyedAccept struct {
	accept int
	record *godwit.IdempotencyRecord
	first  godwit.EventID
}

// newDelivery is a delivery with its event.
type newDelivery struct {
	*store.NewDelivery
	of *newEvent
}

// longAgo is the age above which an event is assumed to be stored: it only gains deliveries.
const longAgo = time.Minute

func (c *commit) arrangeAccepts() {
	accepts := c.batch.Accepts
	if len(accepts) == 0 {
		return
	}
	c.plain = make([]newEvent, 0, len(accepts))
	places := map[[32]byte]int{}
	for i := range accepts {
		a := &accepts[i]
		list := &c.plain
		var first godwit.EventID
		if len(a.Events) > 0 {
			first = a.Events[0].Event.ID
		}
		if a.Part != nil {
			c.parts = append(c.parts, a.Part)
		}
		if a.Broadcast != nil {
			c.broadcasts = append(c.broadcasts, a.Broadcast)
		}
		if a.Record != nil {
			if place, double := places[a.Record.ID]; double {
				if c.doubles == nil {
					c.doubles = map[int]int{}
				}
				c.doubles[i] = place
				continue
			}
			places[a.Record.ID] = len(c.records)
			c.records = append(c.records, keyedAccept{i, a.Record, first})
			list = &c.keyed
		}
		for j := range a.Events {
			e := &a.Events[j]
			*list = append(*list, newEvent{
				event: e.Event, deliveries: e.Deliveries, record: a.Record, first: first, part: a.Part, stored: a.Part != nil, broadcast: a.Broadcast,
			})
			if a.Broadcast != nil && len(e.Later) > 0 {
				later := e.Fanout()
				(*list)[len(*list)-1].later = &later
			}
			if a.Part == nil && c.batch.Now.Sub(e.Event.CreatedAt) > longAgo {
				c.seenBefore = true
			}
		}
	}
}

func (c *commit) addAccepts(p *pipeline) {
	if len(c.plain)+len(c.records) == 0 {
		return
	}
	plain, keyed := deliveriesOf(c.plain), deliveriesOf(c.keyed)
	addAssumptions(p, claimedEpochs(plain, keyed), c.batch.ConfigVersion)
	c.addRecords(p)
	addEvents(p, c.plain, false)
	addEvents(p, c.keyed, true)
	if len(c.broadcasts) > 0 {
		addNewFanouts(p, laterOf(c.plain))
	}
	addPending(p, plain, false)
	addPending(p, keyed, true)
}

func deliveriesOf(events []newEvent) []newDelivery {
	list := make([]newDelivery, 0, len(events))
	for i := range events {
		e := &events[i]
		for j := range e.deliveries {
			list = append(list, newDelivery{&e.deliveries[j], e})
		}
	}
	return list
}

// A transaction that claims holds a shared lock until it ends; one that takes leases locks exclusively. The second statement
// sees everything committed before it got the lock, so no claim under an old epoch can appear after a new owner has taken the
// lease.
var (
	lockLeases  = prepared("lock", fmt.Sprintf(`SELECT pg_advisory_xact_lock_shared(%d)`, leaseLock))
	checkLeases = prepared("leases", `SELECT expect(count(*), $3, '`+stateLeaseLost+`') FROM `+rows(1, "shard int2", "epoch int8")+` AS n
		JOIN leases AS l ON l.shard = n.shard AND l.epoch = n.epoch AND l.owner <> ''`)
	// The version is checked together with the leases, since each statement of a pipeline costs the server some 10 µs.
	checkLeasesAndConfig = prepared("leases_and_config", `SELECT expect(count(*), $3, '`+stateLeaseLost+`'), (`+configIs+`$4) FROM `+
		rows(1, "shard int2", "epoch int8")+` AS n JOIN leases AS l ON l.shard = n.shard AND l.epoch = n.epoch AND l.owner <> ''`)
)

// claimedEpochs returns the epochs under which deliveries are claimed, by shard.
func claimedEpochs(lists ...[]newDelivery) map[int]int64 {
	epochs := map[int]int64{}
	for _, list := range lists {
		for _, d := range list {
			if d.ClaimEpoch == 0 {
				continue
			}
			shard := d.EndpointID.Shard()
			if other, ok := epochs[shard]; ok && other != d.ClaimEpoch {
				epochs[shard] = -1 // one of the two epochs is wrong
				continue
			}
			epochs[shard] = d.ClaimEpoch
		}
	}
	return epochs
}

// addAssumptions ensures that no claim is stored under a lost lease, up to the commit, and that the config version is the given
// one, unless that is 0.
func addAssumptions(p *pipeline, epochs map[int]int64, version int64) {
	switch {
	case len(epochs) > 0:
		addHold(p, epochs, version)
	case version != 0:
		p.begin().scalarInt8(version)
		p.add(checkConfig, nil)
	}
}

// addHold locks and checks leases, and checks the config version unless it is 0.
func addHold(p *pipeline, epochs map[int]int64, version int64) {
	shards := make([]int, 0, len(epochs))
	for shard := range epochs {
		shards = append(shards, shard)
	}
	p.begin()
	p.add(lockLeases, nil)
	a := p.begin()
	column(a, typeInt2, shards, func(s int) { a.int2(s) })
	column(a, typeInt8, shards, func(s int) { a.int8(epochs[s]) })
	a.scalarInt8(int64(len(shards)))
	if version == 0 {
		p.add(checkLeases, nil)
		return
	}
	a.scalarInt8(version)
	p.add(checkLeasesAndConfig, nil)
}

var recordColumns = []string{
	"id bytea", "tenant_id uuid", "event_id uuid", "fingerprint bytea", "response_status int4", "response_type text",
	"response_location text", "response_body bytea", "created_at timestamptz", "expires_at timestamptz",
}

var (
	insertRecords = prepared("records", `INSERT INTO idempotency_records AS r (`+names(recordColumns)+`)
		SELECT `+names(recordColumns)+` FROM `+rows(1, recordColumns...)+` AS n
		ON CONFLICT (id) `+replace(recordColumns)+`
		WHERE r.expires_at <= $11`)
	// A record with another first event existed before.
	otherRecords = prepared("others", `SELECT r.id, r.tenant_id, r.fingerprint, r.response_status, r.response_type,
			r.response_location, r.response_body, r.created_at, r.expires_at, r.event_id
		FROM `+rows(1, "id bytea", "event_id uuid")+` AS n
		JOIN idempotency_records AS r ON r.id = n.id WHERE r.event_id IS DISTINCT FROM n.event_id`)
)

// addRecords stores the records whose keys are free, and reads the existing ones. It orders keys, so that two commits with the
// same keys do not deadlock.
func (c *commit) addRecords(p *pipeline) {
	if len(c.records) == 0 {
		return
	}
	list := slices.Clone(c.records)
	slices.SortFunc(list, func(a, b keyedAccept) int { return bytes.Compare(a.record.ID[:], b.record.ID[:]) })
	a := p.begin()
	column(a, typeBytes, list, func(k keyedAccept) { a.bytes(k.record.ID[:]) })
	column(a, typeID, list, func(k keyedAccept) { a.id(k.record.TenantID) })
	column(a, typeID, list, func(k keyedAccept) { a.optionalID(k.first) })
	column(a, typeBytes, list, func(k keyedAccept) { a.bytes(k.record.Fingerprint[:]) })
	writeResponses(a, list)
	column(a, typeTime, list, func(k keyedAccept) { a.time(k.record.CreatedAt) })
	column(a, typeTime, list, func(k keyedAccept) { a.time(k.record.ExpiresAt) })
	a.scalarTime(c.batch.Now)
	p.add(insertRecords, nil)

	a = p.begin()
	column(a, typeBytes, list, func(k keyedAccept) { a.bytes(k.record.ID[:]) })
	column(a, typeID, list, func(k keyedAccept) { a.optionalID(k.first) })
	c.existing = map[[32]byte]*godwit.IdempotencyRecord{}
	p.add(otherRecords, func(r *row) {
		record := readRecord(r)
		c.existing[record.ID] = record
	})
}

func writeResponses(a *parameters, list []keyedAccept) {
	response := func(write func(*godwit.StoredResponse)) func(keyedAccept) {
		return func(k keyedAccept) {
			if k.record.Response == nil {
				a.null()
				return
			}
			write(k.record.Response)
		}
	}
	column(a, typeInt4, list, response(func(r *godwit.StoredResponse) { a.int4(r.Status) }))
	column(a, typeText, list, response(func(r *godwit.StoredResponse) { a.text(r.ContentType) }))
	column(a, typeText, list, response(func(r *godwit.StoredResponse) { a.text(r.Location) }))
	column(a, typeBytes, list, response(func(r *godwit.StoredResponse) { a.optionalBytes(r.Body) }))
}

func readRecord(r *row) *godwit.IdempotencyRecord {
	record := &godwit.IdempotencyRecord{}
	copy(record.ID[:], r.raw())
	r.id((*[16]byte)(&record.TenantID))
	copy(record.Fingerprint[:], r.raw())
	if r.values[r.next] == nil {
		r.next += 4
	} else {
		record.Response = &godwit.StoredResponse{Status: r.int4(), ContentType: r.text(), Location: r.text(), Body: r.bytes()}
	}
	record.CreatedAt = r.time()
	record.ExpiresAt = r.time()
	r.id((*[16]byte)(&record.EventID))
	return record
}

var eventColumns = []string{
	"tenant_id uuid", "id uuid", "principal uuid", "created_at timestamptz", "type text", "key text", "content_type text",
	"key_slot int8", "deliveries bytea", "attributes json", "body bytea", "format text", "source_id text",
	"occurred_at timestamptz", "carried json",
}

// keySlot is the position of an event in the index over keys. Keys alone are random: each new one would touch, and log,
// another page of the index. With the hour in front, all new ones go to a few pages; a search by key covers each hour.
func keySlot(id godwit.EventID, key string) int64 { return hourOf(id)<<32 | keyHash(key) }

func hourOf(id godwit.EventID) int64 { return id.Time().Unix() / 3600 }

// keyHash is FNV-1a.
func keyHash(key string) int64 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return int64(h)
}

// ours restricts rows to those whose stored record belongs to their own accept.
const ours = ` WHERE EXISTS (SELECT FROM idempotency_records AS r WHERE r.id = n.record_id AND r.event_id = n.first_id)`

var (
	insertEvents      = prepared("events", insert("events", eventColumns...))
	insertKeyedEvents = prepared("keyed_events", `INSERT INTO events (`+names(eventColumns)+`)
		SELECT `+names(eventColumns)+` FROM `+
		rows(1, append(slices.Clone(eventColumns), "record_id bytea", "first_id uuid")...)+` AS n`+ours)
	gainDeliveries = prepared("gain", `UPDATE events SET deliveries = deliveries || $3::bytea
		WHERE tenant_id = $1 AND id = $2 AND ($4::bytea = ''
			OR EXISTS (SELECT FROM idempotency_records AS r WHERE r.id = $4 AND r.event_id = $5))`)
)

func addEvents(p *pipeline, events []newEvent, keyed bool) {
	list := make([]*newEvent, 0, len(events))
	for i := range events {
		if events[i].stored {
			addGain(p, &events[i])
		} else {
			list = append(list, &events[i])
		}
	}
	for len(list) > 0 {
		n, size := 0, 0
		for ; n < len(list) && size < largeStatement; n++ {
			size += len(list[n].event.Body)
		}
		addEventRows(p, list[:n], keyed)
		list = list[n:]
	}
}

func addEventRows(p *pipeline, list []*newEvent, keyed bool) {
	a := p.begin()
	column(a, typeID, list, func(e *newEvent) { a.id(e.event.TenantID) })
	column(a, typeID, list, func(e *newEvent) { a.id(e.event.ID) })
	column(a, typeID, list, func(e *newEvent) { a.optionalID(e.event.Principal) })
	column(a, typeTime, list, func(e *newEvent) { a.time(e.event.CreatedAt) })
	column(a, typeText, list, func(e *newEvent) { a.text(e.event.Type) })
	column(a, typeText, list, func(e *newEvent) { a.text(e.event.Key) })
	column(a, typeText, list, func(e *newEvent) { a.text(e.event.ContentType) })
	column(a, typeInt8, list, func(e *newEvent) { a.int8(keySlot(e.event.ID, e.event.Key)) })
	column(a, typeBytes, list, func(e *newEvent) { a.deliveryIDs(e.deliveries) })
	column(a, typeJSON, list, func(e *newEvent) { a.optionalBytes(encodeMap(e.event.Attributes)) })
	column(a, typeBytes, list, func(e *newEvent) { a.bytes(e.event.Body) })
	rareColumn(a, typeText, list, func(e *newEvent) bool { return e.event.Format != "" }, func(e *newEvent) { a.text(e.event.Format) })
	rareColumn(a, typeText, list, func(e *newEvent) bool { return e.event.SourceID != "" }, func(e *newEvent) { a.text(e.event.SourceID) })
	rareColumn(a, typeTime, list, func(e *newEvent) bool { return !e.event.OccurredAt.IsZero() }, func(e *newEvent) { a.time(e.event.OccurredAt) })
	rareColumn(a, typeJSON, list, func(e *newEvent) bool { return e.event.Carried() != nil }, func(e *newEvent) { a.bytes(encodeCarried(e.event)) })
	if !keyed {
		p.add(insertEvents, nil)
		return
	}
	column(a, typeBytes, list, func(e *newEvent) { a.bytes(e.record.ID[:]) })
	column(a, typeID, list, func(e *newEvent) { a.id(e.first) })
	p.add(insertKeyedEvents, nil)
}

// addGain adds new deliveries to the list of a stored event.
func addGain(p *pipeline, e *newEvent) {
	if len(e.deliveries) == 0 {
		return
	}
	a := p.begin()
	a.scalarID(e.event.TenantID)
	a.scalarID(e.event.ID)
	a.scalarBytes(joinIDs(e.deliveries))
	if e.record != nil {
		a.scalarBytes(e.record.ID[:])
	} else {
		a.scalarBytes(nil)
	}
	a.scalarID(e.first)
	p.add(gainDeliveries, nil)
}

func joinIDs(deliveries []store.NewDelivery) []byte {
	ids := make([]byte, 0, 16*len(deliveries))
	for i := range deliveries {
		ids = append(ids, deliveries[i].ID[:]...)
	}
	return ids
}

// encodeMap returns nil for an empty map.
func encodeMap[V any](m map[string]V) []byte {
	if len(m) == 0 {
		return nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil // strings and lists of strings always encode
	}
	return text
}

var newPendingColumns = []string{
	"tenant_id uuid", "id uuid", "event_id uuid", "endpoint_id uuid", "claim_epoch int8", "created_at timestamptz",
	"shard int2", "run_trigger text",
}

const insertNewPending = `INSERT INTO pending_deliveries (tenant_id, id, event_id, endpoint_id, claim_epoch, created_at,
	updated_at, due_at, shard, run_trigger)
	SELECT tenant_id, id, event_id, endpoint_id, claim_epoch, created_at, created_at, created_at, shard, run_trigger FROM `

var (
	insertPending      = prepared("pending", insertNewPending+rows(1, newPendingColumns...)+` AS n`)
	insertKeyedPending = prepared("keyed_pending", insertNewPending+
		rows(1, append(slices.Clone(newPendingColumns), "record_id bytea", "first_id uuid")...)+` AS n`+ours)
)

func addPending(p *pipeline, list []newDelivery, keyed bool) {
	if len(list) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, list, func(d newDelivery) { a.id(d.of.event.TenantID) })
	column(a, typeID, list, func(d newDelivery) { a.id(d.ID) })
	column(a, typeID, list, func(d newDelivery) { a.id(d.of.event.ID) })
	column(a, typeID, list, func(d newDelivery) { a.id(d.EndpointID) })
	column(a, typeInt8, list, func(d newDelivery) { a.int8(d.ClaimEpoch) })
	column(a, typeTime, list, func(d newDelivery) { a.time(d.of.event.CreatedAt) })
	column(a, typeInt2, list, func(d newDelivery) { a.int2(d.EndpointID.Shard()) })
	column(a, typeText, list, func(d newDelivery) { a.text(string(d.Trigger)) })
	if !keyed {
		p.add(insertPending, nil)
		return
	}
	column(a, typeBytes, list, func(d newDelivery) { a.bytes(d.of.record.ID[:]) })
	column(a, typeID, list, func(d newDelivery) { a.id(d.of.first) })
	p.add(insertKeyedPending, nil)
}
