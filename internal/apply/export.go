package apply

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An Exporter writes the objects of a server as files that Load reads.
type Exporter struct {
	Server *Server
	// Environment is the uid of the only environment to write. Empty: all that the key may see.
	Environment string
	// Note is told of what is left out. It may be nil.
	Note func(format string, args ...any)

	owned map[section][]*Found
}

// An exported is a file to write.
type exported struct {
	name string // with slashes
	text []byte
}

// Directory writes files below a directory: environments.yaml, and for each environment its event types, with a file for each schema, and
// a file for each tenant. Files that are there and are not written stay.
func (x *Exporter) Directory(ctx context.Context, dir string) (files int, err error) {
	list, err := x.read(ctx, true)
	if err != nil {
		return 0, err
	}
	for _, f := range list {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return files, err
		}
		if err := os.WriteFile(name, f.text, 0o644); err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

// Stream returns all objects as one file.
func (x *Exporter) Stream(ctx context.Context) ([]byte, error) {
	list, err := x.read(ctx, false)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(list))
	for i, f := range list {
		parts[i] = f.text
	}
	return bytes.Join(parts, []byte("---\n")), nil
}

// head explains what a file cannot hold.
const head = `# Written by godwit export; godwit apply reads it.
# Secrets are not exported. A new endpoint gets a new signing secret, unless it has secret: {env: NAME} or {file: PATH}. Variables that
# are named below are needed only to create an object or to change its endpoint.
`

func (x *Exporter) read(ctx context.Context, apart bool) ([]exported, error) {
	if x.Note == nil {
		x.Note = func(string, ...any) {}
	}
	if _, err := x.Server.Environments(ctx); err != nil {
		return nil, err
	}
	var uids []string
	for a := range x.Server.found {
		if x.Environment == "" || x.Environment == a.ID || x.Environment == x.Server.found[a].id {
			uids = append(uids, a.ID)
		}
	}
	if len(uids) == 0 {
		return nil, fmt.Errorf("there is no environment %q, or the key may not see it", x.Environment)
	}
	slices.Sort(uids)
	var list members
	for _, uid := range uids {
		found := x.Server.found[Address{Kind: environments, ID: uid}]
		list = append(list, pair{uid, x.document(found, nil)})
	}
	files, err := render(nil, "environments.yaml", members{{environments.section, list}})
	for _, uid := range uids {
		if err == nil {
			files, err = x.environment(ctx, files, uid, apart)
		}
	}
	return files, err
}

// environment writes the event types and tenants of an environment.
func (x *Exporter) environment(ctx context.Context, files []exported, uid string, apart bool) ([]exported, error) {
	everything := scope{types: true, tenants: true, endpoints: true, sources: true, ownTypes: func(string) bool { return true }}
	if err := x.Server.Read(ctx, uid, everything); err != nil {
		return nil, err
	}
	x.leftOut(uid)
	x.owned = map[section][]*Found{}
	for a, f := range x.Server.found {
		s := section{a.Kind, a.Environment, a.Tenant}
		x.owned[s] = append(x.owned[s], f)
	}
	lent := x.Server.found[Address{Kind: environments, ID: uid}].document
	folder := fileName(uid, nil)
	types, schemas, err := x.section(eventTypes, uid, "", lent, apart, folder)
	if err != nil {
		return nil, err
	}
	files = append(files, schemas...)
	if len(types) > 0 {
		if files, err = render(files, folder+"/event-types.yaml", members{{"environment", uid}, {eventTypes.section, types}}); err != nil {
			return nil, err
		}
	}
	taken := map[string]bool{}
	var all members
	for _, t := range x.of(tenants, uid, "") {
		document := x.document(t, lent)
		name := fileName(t.ID, taken)
		for _, k := range []*Kind{eventTypes, endpoints, sources} {
			list, schemas, err := x.section(k, uid, t.ID, lent, apart, folder+"/tenants/"+name)
			if err != nil {
				return nil, err
			}
			files = append(files, schemas...)
			if len(list) > 0 {
				document = append(document, pair{k.section, list})
			}
		}
		if !apart {
			all = append(all, pair{t.ID, document})
			continue
		}
		files, err = render(files, folder+"/tenants/"+name+".yaml", members{{"environment", uid}, {tenants.section, members{{t.ID, document}}}})
		if err != nil {
			return nil, err
		}
	}
	if len(all) > 0 {
		return render(files, "", members{{"environment", uid}, {tenants.section, all}})
	}
	return files, nil
}

// leftOut tells of objects that have no id of their own.
func (x *Exporter) leftOut(environment string) {
	var nameless []string
	for id, uid := range x.Server.tenants[environment] {
		if uid == "" {
			nameless = append(nameless, id)
		}
	}
	if len(nameless) > 0 {
		slices.Sort(nameless)
		x.Note("%s: %d tenants have no uid and are left out, with what they have: %s", environment, len(nameless), clip(nameless))
	}
	if n := x.Server.nameless[environment]; n > 0 {
		x.Note("%s: %d endpoints have no uid and are left out; \"godwit endpoints update ID --body '{\"uid\": …}'\" gives one", environment, n)
	}
}

func clip(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + ", …"
}

// of lists the objects of a kind that an environment or tenant has, by their ids.
func (x *Exporter) of(k *Kind, environment, tenant string) []*Found {
	list := x.owned[section{k, environment, tenant}]
	slices.SortFunc(list, func(a, b *Found) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// section writes a list of objects. Schemas become files of their own below the folder, if they are kept apart.
func (x *Exporter) section(k *Kind, environment, tenant string, lent map[string]any, apart bool, folder string) (list members, files []exported, err error) {
	taken := map[string]bool{}
	for _, f := range x.of(k, environment, tenant) {
		document := x.document(f, lent)
		for i, p := range document {
			if k != eventTypes || p.name != "schema" || !apart {
				continue
			}
			raw, err := indented(p.value)
			if err != nil {
				return nil, nil, err
			}
			name := "schemas/" + fileName(f.ID, taken) + ".json"
			path := folder + "/" + name
			if tenant != "" { // the tenant's file stands beside its folder
				name = folder[strings.LastIndexByte(folder, '/')+1:] + "/" + name
			}
			files = append(files, exported{path, raw})
			document[i].value = members{{"file", name}}
		}
		list = append(list, pair{f.ID, document})
	}
	return list, files, nil
}

// document returns the PUT document of an object of the server, without members that have their usual value.
func (x *Exporter) document(f *Found, lent map[string]any) members {
	k := f.Kind
	var out members
	usual := k.usual(f.document, lent)
	inherits, _ := f.document["inherits"].([]any)
	for _, name := range k.members() {
		value := f.document[name]
		switch {
		case k == tenants && slices.Contains(inheritable(), name):
			if !slices.Contains(inherits, any(name)) {
				out = append(out, pair{name, value})
			}
			continue
		case value == nil && usual[name] == nil:
			continue
		}
		var different []Difference
		if !empty(value) || !empty(usual[name]) {
			compare(name, usual[name], value, k.precision[name], &different)
		} else if k.precision[name] == exact {
			different = append(different, Difference{})
		}
		if len(different) > 0 {
			if value == nil {
				value = map[string]any{} // a policy that the environment's must not replace
			}
			out = append(out, pair{name, value})
		}
	}
	switch k {
	case endpoints:
		out = append(out, sealedMembers(f)...)
	case sources:
		out = append(out, credentials(f)...)
	}
	slices.SortStableFunc(out, func(a, b pair) int { return cmp.Or(rank(a.name)-rank(b.name), strings.Compare(a.name, b.name)) })
	return out
}

// rank puts the members first that people look for.
func rank(name string) int {
	if i := slices.Index([]string{"name", "url", "scheme", "description"}, name); i >= 0 {
		return i
	}
	return 100
}

// authMembers are the members of credentials, by their kind.
var authMembers = map[string][]string{
	"bearer": {"token"}, "basic": {"username", "password"}, "oauth2": {"token_url", "client_id", "client_secret"},
	"mtls": {"certificate_pem", "private_key_pem"},
}

// sealedMembers returns what an endpoint has that the API does not show, as references.
func sealedMembers(f *Found) (out members) {
	names, _ := f.document["header_names"].([]any)
	var headers members
	for _, name := range names {
		header, _ := name.(string)
		headers = append(headers, pair{header, variable(f, "header", header)})
	}
	if len(headers) > 0 {
		out = append(out, pair{"headers", headers})
	}
	if kind := text(f.document, "auth_kind"); kind != "" {
		auth := members{{"kind", kind}}
		for _, name := range authMembers[kind] {
			auth = append(auth, pair{name, variable(f, name)})
		}
		out = append(out, pair{"auth", auth})
	}
	if text(f.document, "status") == "paused" {
		out = append(out, pair{"paused", true})
	}
	return out
}

// credentials returns those of a source that have no end, with references for their secrets.
func credentials(f *Found) members {
	list, _ := f.document["credentials"].([]any)
	var out []any
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c == nil || c["expires_at"] != nil {
			continue
		}
		var credential members
		if id := text(c, "id"); !strings.HasPrefix(id, "sec_") { // those are the server's own
			credential = append(credential, pair{"id", id})
		}
		name := []string{"secret"}
		if n := len(out) + 1; n > 1 {
			name = append(name, fmt.Sprint(n))
		}
		if key := text(c, "public_key"); key != "" {
			credential = append(credential, pair{"public_key", key})
		} else {
			credential = append(credential, pair{"secret", variable(f, name...)})
		}
		out = append(out, credential)
	}
	if len(out) == 0 {
		return nil
	}
	return members{{"credentials", out}}
}

// Ids of plain letters cannot be taken for each other when an underscore joins them. The parts of an object are few: the members of
// credentials, and the names of header fields, whose case does not count.
var (
	plainID   = regexp.MustCompile(`^[a-z0-9]*$`)
	plainPart = regexp.MustCompile(`^([A-Za-z0-9-]+|client_id|client_secret|token_url|certificate_pem|private_key_pem)$`)
)

// variable returns a reference to an environment variable that is named after the object. No two objects share a name: what the letters of a name cannot
// tell apart, such as a-b and a.b, or a tenant a-b and an endpoint b-c of a tenant a, gets a part that follows from the ids alone. So a name stays
// the same when other objects come and go.
func variable(f *Found, parts ...string) members {
	owner := []string{f.Environment, f.Tenant, f.ID}
	all := append(owner[:3:3], parts...)
	name := strings.ToUpper(strings.Join(all, "_"))
	if slices.ContainsFunc(owner, func(id string) bool { return !plainID.MatchString(id) }) || slices.ContainsFunc(parts, func(part string) bool { return !plainPart.MatchString(part) }) {
		sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
		name += "_" + strings.ToUpper(hex.EncodeToString(sum[:4]))
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return members{{"env", name}}
}
