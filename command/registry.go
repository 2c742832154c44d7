package command

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Registry holds the commands that there are. It is safe for concurrent use.
type Registry struct {
	hash hashFunc

	mu       sync.RWMutex
	commands map[commandName]*Registered
}

// commandName is what a command is looked up by; the tenant of a common one is empty.
type commandName struct{ tenant, entity, action string }

// A Registered is a command of a registry. Its declaration has its defaults filled in. Nothing of it changes any more.
type Registered struct {
	Declaration
	Handler Handler

	args *argsSchema
	hash hashFunc
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{hash: sha256.Sum256, commands: map[commandName]*Registered{}}
}

// Register adds a command. Its error tells all that is wrong with the declaration, so that it is corrected once.
//
// The handler of a command that a tenant's own service executes is the one that calls it.
func (r *Registry) Register(d Declaration, h Handler) error {
	d = d.withDefaults()
	args, problems := d.problems(h)
	name := commandName{d.Tenant, d.Entity, d.Action}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.commands[name]; taken {
		problems = append(problems, errors.New("is registered already: an entity has each action once"))
	}
	if len(problems) > 0 {
		for i, p := range problems {
			problems[i] = fmt.Errorf("command %s: %w", d.Name(), p)
		}
		return errors.Join(problems...)
	}
	r.commands[name] = &Registered{Declaration: d, Handler: h, args: args, hash: r.hash}
	return nil
}

// Lookup finds a command, a tenant's own before the common one. It is nil when there is none.
func (r *Registry) Lookup(tenant, entity, action string) *Registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.commands[commandName{tenant, entity, action}]; c != nil {
		return c
	}
	return r.commands[commandName{"", entity, action}]
}

// List is what a tenant may submit, by name: the common commands and its own, which go before common ones of the same name.
func (r *Registry) List(tenant string) []Declaration {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var list []Declaration
	for name, c := range r.commands {
		own := commandName{tenant, name.entity, name.action}
		if name == own || name.tenant == "" && r.commands[own] == nil {
			list = append(list, c.Declaration)
		}
	}
	slices.SortFunc(list, func(a, b Declaration) int {
		return cmp.Or(strings.Compare(a.Entity, b.Entity), strings.Compare(a.Action, b.Action))
	})
	return list
}
