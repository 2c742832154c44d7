package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Address names an object. Environment is empty while the files leave it open.
type Address struct {
	Kind                *Kind
	Environment, Tenant string // uids; Tenant is empty for what belongs to the environment
	ID                  string // uid or name
}

func (a Address) String() string {
	parts := []string{a.Environment, a.Tenant, a.ID}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return a.Kind.noun + " " + strings.Join(parts, "/")
}

// owner returns the object that the object belongs to: its tenant or environment. An environment belongs to none.
func (a Address) owner() (Address, bool) {
	switch {
	case a.Kind == environments:
		return Address{}, false
	case a.Tenant != "":
		return Address{Kind: tenants, Environment: a.Environment, ID: a.Tenant}, true
	}
	return Address{Kind: environments, ID: a.Environment}, true
}

// An Object is an object as the files describe it.
type Object struct {
	Address
	At   Position
	node *node
	// document is the PUT document. Secrets are references in it.
	document map[string]any
	// raw has members that are sent as they stand in a file of their own.
	raw map[string]json.RawMessage
}

// A section is a list of the files, such as the endpoints of a tenant.
type section struct {
	kind                *Kind
	environment, tenant string
}

// Files are the objects that files describe.
type Files struct {
	Objects  []*Object
	sections map[section]bool // those that the files have
	byName   map[Address]*Object
	named    map[string]Position // environments that documents name, with the first place
}

// maxFile bounds a file.
const maxFile = 64 << 20

// Load reads files and directories. A directory is read with those below it, in the order of names: files that end in .yaml or .yml.
// "-" is the given input.
func Load(paths []string, stdin io.Reader) (*Files, error) {
	l := &loader{files: &Files{sections: map[section]bool{}, named: map[string]Position{}}}
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(io.LimitReader(stdin, maxFile))
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			if err := l.text("-", text); err != nil {
				return nil, err
			}
			continue
		}
		names, err := find(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := readLimited(name)
			if err != nil {
				return nil, err
			}
			if err := l.text(name, text); err != nil {
				return nil, err
			}
		}
	}
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	if len(l.files.Objects) == 0 && len(l.files.sections) == 0 {
		return nil, fmt.Errorf("%s: there are no objects; a file has environments, event_types or tenants", strings.Join(paths, ", "))
	}
	return l.files, l.files.index()
}

// find lists the files of a path.
func find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var names []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); !entry.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, name)
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: there are no files that end in .yaml or .yml", path)
	}
	return names, err
}

func readLimited(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: is larger than %d MiB", name, maxFile>>20)
	}
	return text, err
}

type loader struct {
	files  *Files
	faults Faults
}

func (l *loader) text(file string, text []byte) error {
	documents, faults := parseFile(file, text)
	l.faults = append(l.faults, faults...)
	if len(faults) > 0 {
		return nil
	}
	for _, root := range documents {
		if root.shape == isScalar && root.scalar == nil {
			continue // only comments
		}
		fillEmpty(root)
		before := len(l.faults)
		if err := check(root, &l.faults); err != nil {
			return err
		}
		if len(l.faults) == before {
			l.document(root)
		}
	}
	return nil
}

// fillEmpty makes a name without members, such as "order.paid:", an object without members.
func fillEmpty(root *node) {
	empty := func(n *node) {
		if n.shape == isScalar && n.scalar == nil {
			n.shape = isMap
		}
	}
	for _, k := range []*Kind{environments, eventTypes, tenants, endpoints, sources} {
		list := root.value(k.section)
		if list == nil {
			continue
		}
		empty(list)
		for _, m := range list.members {
			empty(m.value)
			if k == tenants {
				fillEmpty(m.value)
			}
		}
	}
}

// document takes the objects of a document that fits the schema.
func (l *loader) document(root *node) {
	environment := ""
	if n := root.value("environment"); n != nil {
		environment = n.scalar.(string)
		if _, known := l.files.named[environment]; !known {
			l.files.named[environment] = n.at
		}
	}
	l.section(root, environments, "", "")
	l.section(root, eventTypes, environment, "")
	for _, t := range l.section(root, tenants, environment, "") {
		for _, k := range []*Kind{eventTypes, endpoints, sources} {
			l.section(t.node, k, environment, t.ID)
			delete(t.document, k.section)
		}
	}
}

// section takes the objects of a list.
func (l *loader) section(from *node, k *Kind, environment, tenant string) (taken []*Object) {
	list := from.value(k.section)
	if list == nil {
		return nil
	}
	l.files.sections[section{k, environment, tenant}] = true
	for _, m := range list.members {
		o := &Object{Address: Address{k, environment, tenant, m.name}, At: m.at, node: m.value}
		o.document, _ = m.value.plain().(map[string]any)
		if k == environments || k == tenants {
			if _, given := o.document["name"]; !given {
				o.document["name"] = m.name
			}
		}
		if k == eventTypes {
			l.schema(o)
		}
		l.files.Objects = append(l.files.Objects, o)
		taken = append(taken, o)
	}
	return taken
}

// schema reads the schema of an event type from its file.
func (l *loader) schema(o *Object) {
	given, _ := o.document["schema"].(map[string]any)
	name, isFile := given["file"].(string)
	if !isFile || len(given) != 1 {
		return
	}
	at := o.node.find([]string{"schema", "file"})
	path := beside(o.At.File, name)
	text, err := readLimited(path)
	if err != nil {
		l.faults.add(at, "schema: %v", err)
		return
	}
	value, err := decode(text)
	if err != nil {
		l.faults.add(at, "schema: %s is not JSON: %v", path, err)
		return
	}
	o.document["schema"], o.raw = value, map[string]json.RawMessage{"schema": text}
}

// beside returns the path of a file that another file names.
func beside(file, name string) string {
	if filepath.IsAbs(name) || file == "-" {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}

// index finds objects by their address, and refuses those that are given twice.
func (f *Files) index() error {
	var faults Faults
	f.byName = make(map[Address]*Object, len(f.Objects))
	for _, o := range f.Objects {
		if first := f.byName[o.Address]; first != nil {
			faults.add(o.At, "%s is given twice; it is also at %s", o.Address, first.At)
			continue
		}
		f.byName[o.Address] = o
	}
	return faults.err()
}

// setEnvironment names the environment that the files leave open.
func (f *Files) setEnvironment(uid string) error {
	for _, o := range f.Objects {
		if o.Kind != environments && o.Environment == "" {
			o.Environment = uid
		}
	}
	for s := range f.sections {
		if s.kind != environments && s.environment == "" {
			delete(f.sections, s)
			s.environment = uid
			f.sections[s] = true
		}
	}
	return f.index()
}

// uses lists the environments that the files describe or name, sorted.
func (f *Files) uses() []string {
	seen := map[string]bool{}
	for _, o := range f.Objects {
		if o.Kind == environments {
			seen[o.ID] = true
		} else {
			seen[o.Environment] = true
		}
	}
	for s := range f.sections {
		if s.kind != environments {
			seen[s.environment] = true
		}
	}
	var uids []string
	for uid := range seen {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	return uids
}
