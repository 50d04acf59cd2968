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
func (d *decoder) client(n *fileNode, what string) (c rules.Client) {
	const example = "for example client: {trusted: [10.0.0.0/8], header: x-forwarded-for}"
	v := d.settings(n, what, example, clientSettings(&c))
	if v != nil && len(n.fields) == 0 {
		d.reject(n, example, "client is empty")
	}
	trusted := v.get("trusted")
	c.TrustUnix = trusted != nil && slices.ContainsFunc(trusted.items, func(item *fileNode) bool { return item.text == unixWord })
	return c
}

func bodiesSettings(b *rules.Bodies) settings {
	return settings{
		{"max", bodySize(&b.Max, "64KiB"), "", "The largest body that is read for rules by form: or json:"},
		{"total", bodySize(&b.Total, "64MiB"), "", "How many bytes of bodies are held at a time"},
	}
}

// bodies reads the bounds on the request bodies that are held.
func (d *decoder) bodies(n *fileNode, what string) (b rules.Bodies) {
	const example = "for example bodies: {max: 64KiB, total: 64MiB}"
	if v := d.settings(n, what, example, bodiesSettings(&b)); v != nil && len(n.fields) == 0 {
		d.reject(n, example, "bodies is empty")
	}
	return b
}

// bodySize returns the value for a size whose bounds package rules checks.
func bodySize(to *int64, example string) fieldBinding {
	return as(to, schemaSize, func(d *decoder, n *fileNode, what string) int64 {
		s, ok := d.scalar(n, what)
		if !ok {
			return 0
		}
		size, ok := ParseBytes(s)
		if !ok {
			d.reject(n, "for example "+example, "%s %s: want a size such as %s", what, quote(s), example)
			return 0
		}
		if size == 0 {
			return invalid
		}
		return size
	})
}
