package store

import (
	"context"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// An EndpointReader reads all endpoints page by page.
type EndpointReader struct {
	Size int // of a page
	// Read returns up to Size endpoints with ids after the given one, in their order.
	Read func(ctx context.Context, after godwit.EndpointID) ([]*LoadedEndpoint, error)
	// Fill completes a page. May be nil.
	Fill func(ctx context.Context, page []*LoadedEndpoint) error
}

type endpointPage struct {
	list []*LoadedEndpoint
	err  error
}

// Each passes all endpoints to fn. A page is read while another one is filled and fn takes a third: a start with many endpoints
// takes as long as the slowest of the three.
func (r *EndpointReader) Each(ctx context.Context, fn func(*LoadedEndpoint) error) error {
	ctx, cancel := context.WithCancel(ctx)
	pages, filled := make(chan endpointPage), make(chan endpointPage)
	var stages sync.WaitGroup
	defer stages.Wait()
	defer cancel()
	stages.Go(func() { defer close(pages); r.read(ctx, pages) })
	stages.Go(func() { defer close(filled); r.fill(ctx, pages, filled) })
	for p := range filled {
		if p.err != nil {
			return p.err
		}
		for _, e := range p.list {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// read sends all pages. An error is the last of them.
func (r *EndpointReader) read(ctx context.Context, to chan<- endpointPage) {
	var after godwit.EndpointID
	for {
		var p endpointPage
		p.list, p.err = r.Read(ctx, after)
		if !p.send(ctx, to) || p.err != nil || len(p.list) < r.Size {
			return
		}
		after = p.list[len(p.list)-1].Endpoint.ID
	}
}

// fill fills pages until there are no more, or one has failed.
func (r *EndpointReader) fill(ctx context.Context, from <-chan endpointPage, to chan<- endpointPage) {
	for p := range from {
		if r.Fill != nil && p.err == nil && len(p.list) > 0 {
			p.err = r.Fill(ctx, p.list)
		}
		if !p.send(ctx, to) || p.err != nil {
			return
		}
	}
}

func (p endpointPage) send(ctx context.Context, to chan<- endpointPage) bool {
	select {
	case to <- p:
		return true
	case <-ctx.Done():
		return false
	}
}
