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

// clientValue returns the value for the settings that determine a client's address.
func clientValue(c *rules.Client) fieldBinding {
	const example = "for example client: {trusted: [10.0.0.0/8], header: x-forwarded-for}"
	return within(c, clientSettings(c), example, notEmpty("client", example), func(_ *decoder, _ *fileNode, v values) {
		trusted := v.get("trusted")
		c.TrustUnix = trusted != nil && slices.ContainsFunc(trusted.items, func(item *fileNode) bool { return item.text == unixWord })
	})
}

const bodiesExample = "for example bodies: {max: 64KiB, total: 64MiB}"

func bodiesSettings(b *rules.Bodies) settings {
	return settings{
		{"max", byteCount(&b.Max, "for example 64KiB", "a size of at least 1, such as 64KiB", 1), "", "The largest body that is read for rules by form: or json:"},
		{"total", byteCount(&b.Total, "for example 64MiB", "a size of at least 1, such as 64MiB", 1), "", "How many bytes of bodies are held at a time"},
	}
}
