package native

// Limits of a tenant; an absent member is the server's default.
type Limits struct {
	EventsPerSecond            int   `json:"events_per_second,omitempty" minimum:"1" maximum:"1000000000" doc:"Events that the tenant may bring in a second, over all nodes; more are answered with 429. Absent: no limit, unless the server has one"`
	Burst                      int   `json:"burst,omitempty" minimum:"1" maximum:"1000000000" doc:"Events that may come at once. Absent: those of a second"`
	Endpoints                  int   `json:"endpoints,omitempty" minimum:"1" maximum:"1000000000" doc:"Endpoints that the tenant may have; more are answered with 403"`
	PayloadBytes               int64 `json:"payload_bytes,omitempty" minimum:"1" maximum:"1000000000" doc:"Size of an event's payload; the server's limit applies too. Larger ones are answered with 413"`
	WaitingDeliveries          int   `json:"waiting_deliveries,omitempty" minimum:"1" maximum:"1000000000" doc:"Deliveries that may wait; while so many do, events are answered with 429. Absent: no limit, unless the server has one"`
	EndpointCreationsPerMinute int   `json:"endpoint_creations_per_minute,omitempty" minimum:"1" maximum:"1000000000" doc:"Endpoints that the tenant's own keys may create in a minute; more are answered with 429. Absent: 60, unless the server has another default"`
}
