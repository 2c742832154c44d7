package cybercube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// Sources are the ranges that deliveries come from, as /.well-known/webhook-ips publishes them.
type Sources []netip.Prefix

// ParseSources reads the document: JSON with a member production, or one range a line.
func ParseSources(document []byte) (Sources, error) {
	var list struct {
		Production []string `json:"production"`
	}
	if json.Unmarshal(document, &list) != nil {
		for line := range strings.Lines(string(document)) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				list.Production = append(list.Production, line)
			}
		}
	}
	var sources Sources
	for _, text := range list.Production {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("read sources: %w", err)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		sources = append(sources, prefix.Masked())
	}
	return sources, nil
}

// Contain reports whether an address is in one of the ranges.
func (s Sources) Contain(ip string) bool {
	addr, err := netip.ParseAddr(strings.Trim(ip, "[]"))
	if err != nil {
		return false
	}
	addr = addr.Unmap().WithZone("")
	for _, prefix := range s {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// IsAllowedSource reports whether an address is in one of the ranges of a document (CCW-HTTP-17). An unreadable document allows
// nothing. It complements verification and does not replace it. Behind a proxy, pass the address that the trusted proxy
// reports.
func IsAllowedSource(ip string, document []byte) bool {
	sources, err := ParseSources(document)
	return err == nil && sources.Contain(ip)
}
