package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// numbered reads n endpoints whose ids count from one, three at a time. Fill gives each its account.
func numbered(n byte) *store.EndpointReader {
	return &store.EndpointReader{
		Size: 3,
		Read: func(_ context.Context, after godwit.EndpointID) (list []*store.LoadedEndpoint, err error) {
			for i := after[15] + 1; i <= n && len(list) < 3; i++ {
				list = append(list, &store.LoadedEndpoint{Endpoint: godwit.Endpoint{ID: godwit.EndpointID{15: i}}})
			}
			return list, nil
		},
		Fill: func(_ context.Context, page []*store.LoadedEndpoint) error {
			for _, e := range page {
				e.Account = "filled"
			}
			return nil
		},
	}
}

func TestEndpointReaderPassesEveryEndpointOnce(t *testing.T) {
	var want []byte
	for n := range byte(11) {
		var got []byte
		err := numbered(n).Each(t.Context(), func(e *store.LoadedEndpoint) error {
			if e.Account != "filled" {
				t.Errorf("endpoint %d of %d is not filled", e.Endpoint.ID[15], n)
			}
			got = append(got, e.Endpoint.ID[15])
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("of %d endpoints: %v, %v", n, got, err)
		}
		want = append(want, n+1)
	}
}

func TestEndpointReaderEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		change func(r *store.EndpointReader)
		fn     func() error
		taken  int
	}{
		"read": {func(r *store.EndpointReader) {
			read := r.Read
			r.Read = func(ctx context.Context, after godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
				if after[15] == 3 {
					return nil, broken
				}
				return read(ctx, after)
			}
		}, nil, 3},
		"fill": {func(r *store.EndpointReader) {
			r.Fill = func(context.Context, []*store.LoadedEndpoint) error { return broken }
		}, nil, 0},
		"take": {func(*store.EndpointReader) {}, func() error { return broken }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := numbered(10)
			test.change(r)
			taken := 0
			err := r.Each(t.Context(), func(*store.LoadedEndpoint) error {
				taken++
				if test.fn != nil {
					return test.fn()
				}
				return nil
			})
			if !errors.Is(err, broken) || taken != test.taken {
				t.Errorf("%d endpoints taken, then %v", taken, err)
			}
		})
	}
}

// While one page is taken, the next one is read.
func TestEndpointReaderReadsAhead(t *testing.T) {
	r := numbered(5)
	read, second := r.Read, make(chan struct{})
	r.Read = func(ctx context.Context, after godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
		if after[15] == 3 {
			close(second)
		}
		return read(ctx, after)
	}
	if err := r.Each(t.Context(), func(*store.LoadedEndpoint) error { <-second; return nil }); err != nil {
		t.Error(err)
	}
}
