package evidence

import "fmt"

// Chains links entries to the chains of several tenants in one transaction of a store. It keeps what is to be stored and stores
// nothing itself.
type Chains struct {
	heads map[string]Head // as they were read
	grown map[string]Head // the heads of chains that have new items
	order []string        // the tenants in grown, in the order of their first new item
	items []Item
}

// NewChains begins with the heads that the transaction has read. A tenant without a chain has the zero Head. The transaction must
// keep others from changing them.
func NewChains(heads map[string]Head) *Chains {
	return &Chains{heads: heads, grown: map[string]Head{}}
}

// Link appends entries to the chain of a tenant, all of them or, with an error, none.
func (c *Chains) Link(tenant string, entries ...Entry) error {
	head, grown := c.grown[tenant]
	if !grown {
		var read bool
		if head, read = c.heads[tenant]; !read {
			return fmt.Errorf("link evidence: the head of tenant %q was not read", tenant)
		}
	}
	before := len(c.items)
	for _, e := range entries {
		item, err := Link(head, tenant, e)
		if err != nil {
			c.items = c.items[:before]
			return err
		}
		c.items = append(c.items, item)
		head = item.Head()
	}
	if len(entries) > 0 {
		c.grown[tenant] = head
		if !grown {
			c.order = append(c.order, tenant)
		}
	}
	return nil
}

// Items are the new items, in the order in which they were linked.
func (c *Chains) Items() []Item { return c.items }

// Heads are the new heads of the chains that have grown.
func (c *Chains) Heads() []Head {
	heads := make([]Head, len(c.order))
	for i, tenant := range c.order {
		heads[i] = c.grown[tenant]
	}
	return heads
}
