// Package cli holds the commands that manage a running server over its API: the nouns (endpoints, deliveries and so on), login and
// named contexts, shell completion and man pages.
//
//	kong struct (flags) ─► verb (list, get, create, update, delete, act) ─► client.Resource ─► table, document or JSON
//	                          ▲
//	         Resource: path, columns, verbs, help of a noun
//
// A noun is a struct of verbs with their flags, and a Resource, found by the noun's name on the command line. The verbs are the
// same code for every noun. A flag's name is the API's name of the member or query parameter, unless an `api` tag says otherwise.
//
// The package never opens the server's database: commands that work on the store are in cmd/godwit.
package cli
