package config

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// unixWord is the item of client.trusted for peers on Unix sockets.
const unixWord = "unix"

func clientSettings(c *rules.Client) settings {
	return settings{
		{"trusted", networks(&c.Trusted, unixWord), "", "Networks of the proxies whose header is believed, and unix for Unix sockets"},
		{"header", choice(&c.Header, rules.XForwardedFor, rules.Forwarded), "", "The header in which these proxies name their client"},
	}
}

// client reads the settings that determine a client's address.
func (d *decoder) client(n *node) (c rules.Client) {
	const example = "for example client: {trusted: [10.0.0.0/8], header: x-forwarded-for}"
	v := d.settings(n, "client", example, clientSettings(&c))
	if v != nil && len(n.fields) == 0 {
		d.reject(n, example, "client is empty")
	}
	trusted := v.get("trusted")
	c.TrustUnix = trusted != nil && slices.ContainsFunc(trusted.items, func(item *node) bool { return item.text == unixWord })
	return c
}
