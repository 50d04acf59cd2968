package config

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

var clientSection = section{
	name: "client", prefix: "client.",
	fields:  []string{"trusted", "header"},
	example: "for example client: {trusted: [10.0.0.0/8], header: x-forwarded-for}",
}

// unixWord stands in client.trusted for peers on Unix sockets.
const unixWord = "unix"

// client reads which address is the client's.
func (d *decoder) client(n *node) (c rules.Client) {
	v := d.section(n, clientSection)
	if v == nil {
		return c
	}
	if len(n.fields) == 0 {
		d.reject(n, clientSection.example, "client is empty")
	}
	trusted := v.get("trusted")
	c.Trusted = d.prefixes(trusted, "client.trusted", unixWord)
	c.TrustUnix = trusted != nil && slices.ContainsFunc(trusted.items, func(item *node) bool { return item.text == unixWord })
	header, _ := d.choice(v.get("header"), "client.header", string(rules.XForwardedFor), string(rules.Forwarded))
	c.Header = rules.ClientHeader(header)
	return c
}
