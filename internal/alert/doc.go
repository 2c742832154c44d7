// Package alert tells people of what they should know soon: deliveries that are dead, endpoints that are degraded or disabled
// (CCW-DLQ-3, CCW-HLT-8).
//
//	engine.OnNotice ─► Queue.Post (never waits) ─► group by tenant: a few a minute, the rest summed up ─► outbox ─► Notifier
//	                                                                                       ▲                  │ failed for now
//	                                                                                       └── back-off ◄─────┘
//
// A Notifier is a way to reach people: Mail sends e-mail, Log writes a line. The notice itself is in the store before anything
// comes here, so what cannot be told is not lost: it is in the list of notices.
//
// The package decides nothing about endpoints and keeps nothing over a restart.
package alert
