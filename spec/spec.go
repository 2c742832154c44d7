// Package spec holds the documents that programs read: the OpenAPI document of the native API. Tests read the others from their files.
package spec

import _ "embed"

// OpenAPI is the OpenAPI document of the native API, as the server of this version serves it.
//
//go:embed openapi.json
var OpenAPI []byte
