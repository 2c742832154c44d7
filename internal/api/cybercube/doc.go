// Package cybercube serves the API of the CYBERCUBE Webhooks & External Integrations Standard under /api/v1/webhooks/. It
// uses the same services as every other API: other APIs see the endpoints that are created here, and an event posted here
// goes to every endpoint that subscribes to it.
//
//	request ─► dialect: who, body, repeats ─► hourly limit ─► management, engine or store ─► {"data": …}
//	                 └────────────────── any error ───────────────────► {"error": {code, message, details, …}}
//
//	endpoints            create, list, get, change, delete, rotate-secret, test, failures, logs
//	events               post, replay one
//	replay               replay a range
//
// Ids are WEB-XXXXXX-X and evt_ with 26 characters. The ids of the other APIs are accepted too.
//
// A request counts against its operation's limit only if it was carried out. A request that is refused for another reason
// does not count.
//
// The profile defines the wire format of deliveries. Policies of endpoints belong to the native API: the standard has no
// such members, so this API neither shows nor changes them.
package cybercube
