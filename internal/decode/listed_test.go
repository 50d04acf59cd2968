package decode

import (
	"net/netip"
	"testing"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func TestListedAddresses(t *testing.T) {
	trust := Trust{Mode: TrustListed, Senders: prefixes("10.0.0.0/8", "2001:db8::/32", "127.0.0.1/32")}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "2001:db8::7": true, "2001:db9::7": false,
		"127.0.0.1": true, "127.0.0.2": false, "::1": false, "::ffff:127.0.0.1": true,
	} {
		if got := trust.isListed(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
