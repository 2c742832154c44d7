// Package cybercube is the receiver library of the CYBERCUBE webhooks standard, with the names and texts that the standard
// gives: for applications that follow its samples.
//
//	webhooks, err := cybercube.New(os.Getenv("WEBHOOK_SECRET"))
//	event, err := webhooks.ConstructEvent(body, r.Header.Get("X-Webhook-Signature"), r.Header.Get("X-Webhook-Timestamp"))
//	var refused *cybercube.SignatureError
//	if errors.As(err, &refused) { … 401 … }
//
// A [Processor] handles each event once, and remembers it in the standard's table processed_webhook_events or in memory.
// [RateLimit], [IsAllowedSource] and [ValidateEvent] are the standard's further advice.
//
// For a new receiver, take receiver.New with the scheme receiver.Cybercube in place of all this: it does the same in the
// right order by itself, and keeps its promises when a process dies.
package cybercube
