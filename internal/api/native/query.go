package native

import "github.com/godwit-hq/godwit/internal/api/httpapi"

// anyParameters and noParameters are lists for readQuery. huma checks the names of the parameters of its operations itself.
var (
	anyParameters []string
	noParameters  = []string{}
)

var readQuery = httpapi.ReadQuery
