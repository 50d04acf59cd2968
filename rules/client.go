package rules

import (
	"fmt"
	"net/netip"
)

// Client decides which address is that of the client that sent a request. The zero value takes
// the address of the connection's peer.
type Client struct {
	// Trusted are the networks of the proxies whose header is believed.
	Trusted []netip.Prefix
	// TrustUnix also trusts peers that connect by a Unix socket.
	TrustUnix bool
	// Header is the one header in which these proxies record who connected to them. It is read
	// from right to left, as long as the writer of an entry is trusted.
	Header ClientHeader
}

// ClientHeader is a header that names the client of a proxy.
type ClientHeader string

// Headers that name the client of a proxy.
const (
	XForwardedFor ClientHeader = "x-forwarded-for"
	Forwarded     ClientHeader = "forwarded" // RFC 7239
)

// maxTrusted is the most networks of proxies, since each address is compared with all of them.
const maxTrusted = 256

func (c *Client) validate() (bad FieldErrors) {
	trusts := len(c.Trusted) > 0 || c.TrustUnix
	switch c.Header {
	case XForwardedFor, Forwarded:
		if !trusts {
			bad.add("client.header", quoted(string(c.Header)), "add trusted: with the networks of your proxies, for example [10.0.0.0/8]", "no proxy is trusted, so the header would never be read").needs("client.trusted")
		}
	case "":
		if trusts {
			bad.addSentence("client.header", "add header: x-forwarded-for or header: forwarded, whichever your proxies write", "client.header is missing: it names the header in which trusted proxies send their client").needs("client.header")
		}
	default:
		bad.add("client.header", quoted(string(c.Header)), "name the header that your proxies write", "want %s or %s", XForwardedFor, Forwarded)
	}
	if len(c.Trusted) > maxTrusted {
		bad.add("client.trusted", "", "join adjacent networks", "%d networks: want %d at most", len(c.Trusted), maxTrusted)
	}
	for i, p := range c.Trusted {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			bad.add(fmt.Sprintf("client.trusted[%d]", i), quoted(p.String()), "for example 10.0.0.0/8 or 2001:db8::/32", "want a network without bits behind its prefix, IPv4 as such")
		}
	}
	return bad
}
