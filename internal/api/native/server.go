package native

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

type server struct {
	cfg      Config
	mux      *http.ServeMux
	http     *httpapi.API
	api      huma.API
	document []byte            // the OpenAPI document
	patterns map[string]access // access of each route, by mux pattern
	bodies   *httpapi.Quota    // quota of request bodies
	streams  *httpapi.Quota
	exports  *httpapi.Quota
	// bodySchemas has the schema of each operation's body, by mux pattern.
	bodySchemas map[string]*huma.Schema
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpapi.NameRequest(w, r)
	defer httpapi.Recover(w, r, s.cfg.Problems)
	s.mux.ServeHTTP(w, r)
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Problems.Write(w, r, err)
}
