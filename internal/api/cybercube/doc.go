// Package cybercube is the API of the CYBERCUBE Webhooks & External Integrations Standard, under /api/v1/webhooks/, over the
// same services as every other API: an endpoint made here is an endpoint, an event posted here goes to all who want it.
//
//	request ─► dialect: who, body, repeats ─► hourly limit ─► registry, engine or store ─► {"data": …}
//	                 └────────────────── any error ───────────────────► {"error": {code, message, details, …}}
//
//	endpoints            create, list, get, change, delete, rotate-secret, test, failures, logs
//	events               post, replay one
//	replay               replay a range
//
// Ids are WEB-XXXXXX-X and evt_ with 26 characters; those of the other APIs are understood too.
//
// A request counts against its operation's limit when it was carried out: one that is refused for another reason costs
// nothing.
//
// How a delivery looks on the wire is the profile's matter. Policies of endpoints are the native API's: the standard has no
// such members, so they are neither shown nor changed here.
package cybercube
