package command

import "io"

// A Registry holds the commands that there are.
type Registry struct{}

// A Registered is a command of a registry. Its declaration has its defaults filled in.
type Registered struct {
	Declaration
	Handler Handler
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// Register adds a command; its error names all that is wrong with the declaration.
func (r *Registry) Register(d Declaration, h Handler) error { return nil }

// Lookup finds a command, a tenant's own before the common one; nil when there is none.
func (r *Registry) Lookup(tenant, entity, action string) *Registered { return nil }

// List is what a tenant may call, by name.
func (r *Registry) List(tenant string) []Declaration { return nil }

// ReadDeclarations reads a declaration file: {"commands": [...]}.
func ReadDeclarations(r io.Reader) ([]Declaration, error) { return nil, nil }
