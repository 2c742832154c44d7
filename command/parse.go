package command

// ParseEnvelope reads a command as it came over the wire. Its error is a *Refusal that names the member at fault.
func ParseEnvelope(body []byte) (*Envelope, error) { return nil, &Refusal{Code: Malformed} }

// Validate checks what ParseEnvelope does of the members.
func (e *Envelope) Validate() error { return nil }
