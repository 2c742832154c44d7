package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// layer is a compressed layer and the digest of its tar file.
type layer struct {
	compressed []byte
	diffID     string
}

// makeLayer makes one layer of all COPY steps. Directories above a target belong to root and are readable for all.
func makeLayer(steps []copyStep, stages map[string]string) (*layer, error) {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	made := map[string]bool{"": true}
	for _, step := range steps {
		root, known := stages[step.from]
		if !known {
			return nil, fmt.Errorf("no directory for the stage %s: give -stage %s=DIRECTORY", step.from, step.from)
		}
		if err := makeParents(w, made, path.Dir(step.target)); err != nil {
			return nil, err
		}
		if err := copyTree(w, filepath.Join(root, step.source), step, made); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return &layer{compressed: compressed.Bytes(), diffID: digest(plain.Bytes())}, nil
}

func makeParents(w *tar.Writer, made map[string]bool, directory string) error {
	directory = strings.Trim(directory, "/")
	if made[directory] {
		return nil
	}
	if err := makeParents(w, made, strings.Trim(path.Dir("/"+directory), "/")); err != nil {
		return err
	}
	made[directory] = true
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: directory + "/", Mode: 0o755, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
}

// copyTree writes a file, or a directory with its files. Times are left out: the same files make the same image.
func copyTree(w *tar.Writer, source string, step copyStep, made map[string]bool) error {
	return filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file) // a link to a file becomes the file, as with the bundle of authorities on some systems
		if err != nil {
			return err
		}
		h := &tar.Header{
			Name: strings.TrimPrefix(path.Join(step.target, filepath.ToSlash(below)), "/"), Mode: int64(info.Mode().Perm()),
			Uid: step.uid, Gid: step.gid, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if info.IsDir() {
			if made[h.Name] {
				return nil
			}
			made[h.Name] = true
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			return w.WriteHeader(h)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory", file)
		}
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(w, content)
		return err
	})
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageFile struct {
	Architecture string      `json:"architecture"`
	OS           string      `json:"os"`
	Config       imageConfig `json:"config"`
	RootFS       rootFS      `json:"rootfs"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// savedImage is an entry of the manifest.json that `docker save` writes.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// archive collects the files of an image layout.
type archive struct {
	w   *tar.Writer
	err error
}

func (a *archive) file(name string, content []byte) {
	if a.err != nil {
		return
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if a.err = a.w.WriteHeader(h); a.err == nil {
		_, a.err = a.w.Write(content)
	}
}

func (a *archive) json(name string, v any) {
	content, err := json.Marshal(v)
	if err != nil {
		a.err = err
	}
	a.file(name, content)
}

// blob stores the content under its digest.
func (a *archive) blob(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
	a.file(blobPath(d), content)
	return d
}

func (a *archive) jsonBlob(mediaType string, v any) descriptor {
	content, err := json.Marshal(v)
	if err != nil {
		a.err = err
	}
	return a.blob(mediaType, content)
}

func blobPath(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// writeImage writes the image layout.
func writeImage(out io.Writer, name, architecture string, config imageConfig, l *layer) error {
	a := &archive{w: tar.NewWriter(out)}
	a.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	image := imageFile{Architecture: architecture, OS: "linux", Config: config, RootFS: rootFS{Type: "layers", DiffIDs: []string{l.diffID}}}
	configBlob := a.jsonBlob(configType, image)
	layerBlob := a.blob(layerType, l.compressed)
	m := a.jsonBlob(manifestType, manifest{SchemaVersion: 2, MediaType: manifestType, Config: configBlob, Layers: []descriptor{layerBlob}})
	_, tag, _ := strings.Cut(name, ":")
	m.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": name}
	a.json("index.json", index{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json", Manifests: []descriptor{m}})
	a.json("manifest.json", []savedImage{{Config: blobPath(configBlob), RepoTags: []string{name}, Layers: []string{blobPath(layerBlob)}}})
	if a.err != nil {
		return a.err
	}
	return a.w.Close()
}
