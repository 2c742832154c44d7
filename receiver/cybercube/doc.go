// Package cybercube is the receiver library of the CYBERCUBE webhooks standard, with the standard's own names and texts: for
// applications that follow its samples.
//
//	webhooks, err := cybercube.New(os.Getenv("WEBHOOK_SECRET"))
//	event, err := webhooks.ConstructEvent(body, r.Header.Get("X-Webhook-Signature"), r.Header.Get("X-Webhook-Timestamp"))
//	var refused *cybercube.SignatureError
//	if errors.As(err, &refused) { … 401 … }
//
// A [Processor] handles each event once, and remembers it in the standard's table processed_webhook_events or in memory.
// [RateLimit], [IsAllowedSource] and [ValidateEvent] implement the standard's further advice.
//
// For a new receiver use receiver.New with the scheme receiver.Cybercube instead: it runs all steps in the right order, and
// stays correct when a process dies.
package cybercube
