package godwit

// TenantLimits bound what a tenant may use. A member that is 0 is the server's default.
type TenantLimits struct {
	EventsPerSecond            int   `json:"events_per_second,omitempty"` // over all nodes
	Burst                      int   `json:"burst,omitempty"`             // events at once. Defaults to those of a second.
	Endpoints                  int   `json:"endpoints,omitempty"`
	PayloadBytes               int64 `json:"payload_bytes,omitempty"`      // of an event; the server's limit applies too
	WaitingDeliveries          int   `json:"waiting_deliveries,omitempty"` // with so many, further events are refused
	EndpointCreationsPerMinute int   `json:"endpoint_creations_per_minute,omitempty"`
}

// Intake returns the limits of the events that a tenant may bring, with those of the server for absent members.
func (l TenantLimits) Intake(server TenantLimits) TenantLimits {
	if l.EventsPerSecond == 0 {
		l.EventsPerSecond, l.Burst = server.EventsPerSecond, server.Burst
	}
	if l.Burst == 0 {
		l.Burst = l.EventsPerSecond
	}
	if l.WaitingDeliveries == 0 {
		l.WaitingDeliveries = server.WaitingDeliveries
	}
	return l
}
