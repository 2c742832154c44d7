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

// A Registry holds the registered commands. It is safe for concurrent use.
type Registry struct {
	hash hashFunc

	mu       sync.RWMutex
	commands map[commandName]*Registered
}

// commandName is the lookup key of a command. The tenant is empty for a common command.
type commandName struct{ tenant, entity, action string }

// A Registered is a command of a registry. Its declaration has its defaults set. It is immutable.
type Registered struct {
	Declaration
	Handler Handler

	args *argsSchema
	hash hashFunc
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{hash: sha256.Sum256, commands: map[commandName]*Registered{}}
}

// Register adds a command. Its error lists all problems of the declaration at once.
//
// The handler of a command that a tenant's service executes is the one that calls this service.
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

// Lookup finds a command. A tenant's own command precedes the common one. It returns nil if there is none.
func (r *Registry) Lookup(tenant, entity, action string) *Registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.commands[commandName{tenant, entity, action}]; c != nil {
		return c
	}
	return r.commands[commandName{"", entity, action}]
}

// List returns the commands that a tenant may submit, by name: its own commands, and the common ones whose name it does
// not use.
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
