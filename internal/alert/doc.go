// Package alert notifies people of dead deliveries and of endpoints that are degraded or disabled (CCW-DLQ-3, CCW-HLT-8).
//
//	engine.OnNotice ─► Queue.Post (never waits) ─► group by tenant: a few a minute, the rest summed up ─► outbox ─► Notifier
//	                                                                                       ▲                  │ failed for now
//	                                                                                       └── back-off ◄─────┘
//
// A Notifier sends alerts: Mail by e-mail, Log as log lines. Notices are stored before they reach the queue, so an alert
// that cannot be sent is not lost: its notices are still listed.
//
// The package decides nothing about endpoints and keeps no state over a restart.
package alert
