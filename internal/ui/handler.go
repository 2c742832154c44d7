package ui

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

//go:embed all:dist
var dist embed.FS

// DashboardPath and PortalPath are where the pages are mounted.
const (
	DashboardPath = "/ui/"
	PortalPath    = "/portal/"
)

const (
	assetPrefix = "assets/"
	embedFile   = "embed.js"
)

// Config of the pages.
type Config struct {
	// Errors answers requests that match no file and no page.
	Errors httpapi.ErrorWriter
	// Ancestors returns the origins of pages that may show the portal of an environment in a frame. If it fails, none may. Defaults to none.
	Ancestors func(ctx context.Context, environment string) ([]string, error)
}

// A file is ready to be sent, plain and compressed.
type file struct {
	contentType string
	etag        string
	plain, gzip []byte
}

type handler struct {
	cfg   Config
	files map[string]file // by path below dist
}

// New returns the handler of /ui/ and of /portal/.
func New(cfg Config) (httpapi.Router, error) {
	h := &handler{cfg: cfg, files: map[string]file{}}
	if h.cfg.Ancestors == nil {
		h.cfg.Ancestors = func(context.Context, string) ([]string, error) { return nil, nil }
	}
	if err := h.read(); err != nil {
		return nil, err
	}
	mux := httpapi.NewMux()
	mux.HandleFunc("GET "+DashboardPath+"{path...}", h.dashboard)
	mux.HandleFunc("GET "+PortalPath+"{path...}", h.portal)
	mux.HandleFunc("GET "+PortalPath+embedFile, h.embed)
	mux.Unmatched("/", cfg.Errors, "")
	return mux, nil
}

func (h *handler) read() error {
	return fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := newFile(name, content)
		if err != nil {
			return fmt.Errorf("read page %s: %w", name, err)
		}
		h.files[strings.TrimPrefix(name, "dist/")] = f
		return nil
	})
}

func newFile(name string, content []byte) (file, error) {
	f := file{plain: content, contentType: mime.TypeByExtension(path.Ext(name)), etag: etag(content)}
	if f.contentType == "" {
		f.contentType = "application/octet-stream"
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return f, err
	}
	if _, err := w.Write(content); err != nil {
		return f, err
	}
	if err := w.Close(); err != nil {
		return f, err
	}
	if packed.Len() < len(content) {
		f.gzip = packed.Bytes()
	}
	return f, nil
}

func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

func (h *handler) dashboard(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("path"); strings.HasPrefix(name, assetPrefix) {
		h.asset(w, r, name)
		return
	}
	w.Header().Set("Content-Security-Policy", policy(nil))
	w.Header().Set("X-Frame-Options", "DENY")
	h.page(w, r, "index.html")
}

// portal sends the page below /portal/{environment}/. The path names the environment because a frame's first request tells nothing else about it.
func (h *handler) portal(w http.ResponseWriter, r *http.Request) {
	environment, _, _ := strings.Cut(r.PathValue("path"), "/")
	ancestors, err := h.cfg.Ancestors(r.Context(), environment)
	if err != nil {
		ancestors = nil
	}
	w.Header().Set("Content-Security-Policy", policy(ancestors))
	if len(ancestors) == 0 {
		w.Header().Set("X-Frame-Options", "DENY")
	}
	h.page(w, r, "portal.html")
}

// embed sends the script of <godwit-portal>, which pages of any origin may load. Its name stays, so browsers ask whether it changed.
func (h *handler) embed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.files[embedFile].send(w, r)
}

// page sends a page. Browsers ask each time whether it changed, since its name stays. The policy is part of the tag: some browsers go on with the header
// fields that they have stored when they are told that a page is as before, and an origin that may no longer frame it still could.
func (h *handler) page(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	f := h.files[name]
	f.etag = etag([]byte(f.etag + w.Header().Get("Content-Security-Policy")))
	f.send(w, r)
}

// asset sends a file whose name has a digest of its content.
func (h *handler) asset(w http.ResponseWriter, r *http.Request, name string) {
	f, found := h.files[name]
	if !found {
		h.cfg.Errors.Write(w, r, errNoAsset)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	f.send(w, r)
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if h.Get("Cross-Origin-Resource-Policy") == "" {
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
	}
	h.Set("Etag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	if f.matches(r) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.gzip != nil && acceptsGzip(r) {
		body = f.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have gone
	}
}

func (f file) matches(r *http.Request) bool {
	for tag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == f.etag {
			return true
		}
	}
	return false
}

func acceptsGzip(r *http.Request) bool {
	for value := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(value, ";")
		if strings.TrimSpace(coding) == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
