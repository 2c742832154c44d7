package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const containerfile = "../Containerfile"

// buildStage makes a directory like the Containerfile's stage `build`, around the program.
func buildStage(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"etc/ssl/certs", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "out/data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"), []byte("authorities"), 0o644); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "out/godwit"), content, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func buildImage(t *testing.T, stage string) string {
	t.Helper()
	output := filepath.Join(t.TempDir(), "image.tar")
	if err := build(containerfile, "godwit:1.2.3", output, "amd64", map[string]string{"build": stage}); err != nil {
		t.Fatal(err)
	}
	return output
}

// readTar returns the files of a tar file and their headers, in order.
func readTar(t *testing.T, r io.Reader) (headers []*tar.Header, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return headers, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
		files[h.Name] = content
	}
}

// unpacked is an image as a runtime sees it, found by its digests.
type unpacked struct {
	config imageConfig
	layer  []*tar.Header
	files  map[string][]byte
}

func unpack(t *testing.T, image string) unpacked {
	t.Helper()
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, files := readTar(t, f)
	blob := func(d descriptor, into any) []byte {
		content, there := files[blobPath(d)]
		if !there || digest(content) != d.Digest || len(content) != d.Size {
			t.Fatalf("blob %+v: there %t, %d bytes of digest %s", d, there, len(content), digest(content))
		}
		if into != nil {
			decode(t, content, into)
		}
		return content
	}
	var (
		i     index
		m     manifest
		c     imageFile
		saved []savedImage
	)
	decode(t, files["index.json"], &i)
	blob(i.Manifests[0], &m)
	blob(m.Config, &c)
	decode(t, files["manifest.json"], &saved)
	if want := (savedImage{blobPath(m.Config), []string{"godwit:1.2.3"}, []string{blobPath(m.Layers[0])}}); saved[0].Config != want.Config ||
		!slices.Equal(saved[0].RepoTags, want.RepoTags) || !slices.Equal(saved[0].Layers, want.Layers) {
		t.Errorf("manifest.json has %+v, not %+v", saved[0], want)
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(m.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if digest(plain) != c.RootFS.DiffIDs[0] {
		t.Errorf("the layer has digest %s, the configuration says %s", digest(plain), c.RootFS.DiffIDs[0])
	}
	u := unpacked{config: c.Config}
	u.layer, u.files = readTar(t, bytes.NewReader(plain))
	return u
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func TestImageOfTheContainerfile(t *testing.T) {
	stage := buildStage(t, "main.go") // any file will do as the program
	u := unpack(t, buildImage(t, stage))
	type entry struct {
		name string
		mode int64
		uid  int
	}
	var got []entry
	for _, h := range u.layer {
		got = append(got, entry{h.Name, h.Mode, h.Uid})
	}
	want := []entry{
		{"etc/", 0o755, 0}, {"etc/ssl/", 0o755, 0}, {"etc/ssl/certs/", 0o755, 0}, {"etc/ssl/certs/ca-certificates.crt", 0o644, 0},
		{"usr/", 0o755, 0}, {"usr/bin/", 0o755, 0}, {"usr/bin/godwit", 0o755, 0},
		{"data/", 0o700, 65532},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the layer has\n%v, not\n%v", got, want)
	}
	c := u.config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/godwit"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("user %q runs %q %q", c.User, c.Entrypoint, c.Cmd)
	}
	if _, volume := c.Volumes["/data"]; !volume || !slices.Contains(c.Env, "GODWIT_DATA=/data") {
		t.Errorf("volumes %v, environment %q", c.Volumes, c.Env)
	}
	if c.Healthcheck == nil || !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/usr/bin/godwit", "health"}) {
		t.Errorf("health check %+v", c.Healthcheck)
	}
	first, err := os.ReadFile(buildImage(t, stage))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(buildImage(t, stage))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same files made two different images")
	}
}

func TestStageThatCannotBeBuilt(t *testing.T) {
	for text, says := range map[string]string{
		"FROM debian\nUSER 1":                             "FROM scratch",
		"FROM scratch\nRUN true":                          "RUN true",
		"FROM scratch\nCOPY a b":                          "--from",
		"FROM scratch\nCOPY --from=x --chown=me:us a b":   "UID:GID",
		"FROM scratch\nCOPY --from=x --link a b":          "--link",
		"FROM scratch\nHEALTHCHECK CMD curl localhost":    "no shell",
		"FROM scratch\nHEALTHCHECK --retries=1s CMD []":   "--retries",
		"FROM scratch\nENV GODWIT_LISTEN 0.0.0.0:8080":    "assignment",
		"FROM scratch\nENTRYPOINT /usr/bin/godwit serve ": "ENTRYPOINT",
	} {
		if _, err := parseStage(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
