package sender

import (
	"fmt"
	"net/netip"

	"code.dny.dev/ssrf"
)

// Addresses of cloud metadata services outside the ranges that IANA sets aside.
var metadataV4 = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent
}

// A guard decides which addresses may be connected to: public unicast, and those the operator listed (EDS-SEC-AZN-3). The
// ranges come from a library that generates them from IANA's registries. Everything in IPv6 outside 2000::/3 is refused, and
// with it every form that embeds an IPv4 address.
type guard struct {
	ranges *ssrf.Guardian
}

// A blockedError says that the guard refused an address.
type blockedError struct{ addr netip.Addr }

func (e *blockedError) Error() string {
	return fmt.Sprintf("address %s is not a permitted destination", e.addr)
}

func newGuard(allow, deny []netip.Prefix) (guard, error) {
	allow4, allow6, err := byFamily(allow)
	if err != nil {
		return guard{}, fmt.Errorf("read AllowAddresses: %w", err)
	}
	deny4, deny6, err := byFamily(deny)
	if err != nil {
		return guard{}, fmt.Errorf("read DenyAddresses: %w", err)
	}
	return guard{ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(allow4...),
		ssrf.WithAllowedV6Prefixes(allow6...),
		ssrf.WithDeniedV4Prefixes(append(deny4, metadataV4...)...),
		ssrf.WithDeniedV6Prefixes(deny6...),
	)}, nil
}

func byFamily(prefixes []netip.Prefix) (v4, v6 []netip.Prefix, err error) {
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			return nil, nil, fmt.Errorf("prefix is not valid")
		case p.Addr().Is4In6():
			return nil, nil, fmt.Errorf("prefix %s: write it as an IPv4 prefix", p)
		case p.Addr().Is4():
			v4 = append(v4, p.Masked())
		default:
			v6 = append(v6, p.Masked())
		}
	}
	return v4, v6, nil
}

// check returns a *blockedError for an address that must not be connected to.
func (g guard) check(addr netip.Addr) error {
	if g.ranges.SafeAddr(addr) != nil {
		return &blockedError{addr}
	}
	return nil
}

// control is for net.Dialer: address is the one about to be dialled.
func (g guard) control(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &blockedError{}
	}
	if network != "tcp4" && network != "tcp6" {
		return &blockedError{at.Addr()}
	}
	return g.check(at.Addr())
}

// allowsLoopback reports whether a name of this machine may be used.
func (g guard) allowsLoopback() bool {
	return g.check(netip.AddrFrom4([4]byte{127, 0, 0, 1})) == nil || g.check(netip.IPv6Loopback()) == nil
}
