package profile

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// The ids that messages in tests have, fixed so that golden files are.
var (
	testEventID    = godwit.EventID{0x01, 0x95, 0x39, 0xa4, 0xb6, 0x8c, 0x7d, 0xef, 0x80, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66}
	testDeliveryID = godwit.DeliveryID{0x01, 0x95, 0x39, 0xa4, 0xb6, 0x8c, 0x7d, 0xef, 0x80, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa}
	testEndpointID = godwit.EndpointID{0x01, 0x95, 0x39, 0xa4, 0xb6, 0x8c, 0x7d, 0xef, 0x80, 0x00, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	testAttemptID  = godwit.AttemptID{0x01, 0x95, 0x39, 0xa4, 0xb6, 0x8c, 0x7d, 0xef, 0x80, 0x00, 1, 2, 3, 4, 5, 6}
)

// message is an event on its way; payload is what it carries, in the envelope of the format.
func message(format string, payload []byte) Message {
	e := &godwit.Event{
		ID: testEventID, Type: "order.paid", Key: "0123456789abcdef", ContentType: "application/json", Body: payload,
		CreatedAt: now.Add(250 * time.Millisecond), Format: format,
	}
	switch format {
	case godwit.FormatOJS:
		e.Body = OJSEnvelope(OJSEvent{ID: e.ID.String(), Type: e.Type, Source: "ojs://shop/orders", Time: e.Time(), Subject: "ord_1", Data: payload})
	case godwit.FormatCybercube:
		data := append(append([]byte(`{"object":`), payload...), '}')
		e.Body = CybercubeEnvelope(CybercubeEvent{ID: CybercubeEventID(e), Type: e.Type, CreatedAt: e.Time(), Data: data, Account: "9F4K7Q", Livemode: true})
	}
	return Message{
		Event: e, Delivery: &godwit.Delivery{ID: testDeliveryID, EventID: e.ID, EndpointID: testEndpointID},
		Attempt: 1, ID: testAttemptID, Account: "9F4K7Q",
		Budget: Budget{Limit: 1000, Remaining: 999, Reset: now.Add(time.Minute)},
	}
}
