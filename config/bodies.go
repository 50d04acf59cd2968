package config

import "github.com/hotparam/hotparam/rules"

func bodiesSettings(b *rules.Bodies) settings {
	return settings{
		{"max", bodySize(&b.Max, "64KiB"), "", "The largest body that is read for rules by form: or json:"},
		{"total", bodySize(&b.Total, "64MiB"), "", "How many bytes of bodies are held at a time"},
	}
}

// bodies reads the bounds on the request bodies that are held.
func (d *decoder) bodies(n *node) (b rules.Bodies) {
	const example = "for example bodies: {max: 64KiB, total: 64MiB}"
	if v := d.settings(n, "bodies", example, bodiesSettings(&b)); v != nil && len(n.fields) == 0 {
		d.reject(n, example, "bodies is empty")
	}
	return b
}

// bodySize returns the value for a size whose bounds package rules checks.
func bodySize(to *int64, example string) value {
	return as(to, schemaSize(), func(d *decoder, n *node, what string) int64 {
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

// unread reads the treatment of requests whose body cannot be read.
func (r *ruleReader) unread(n *node) rules.Unread {
	var words []string
	for u := rules.UnreadLimit; u <= rules.UnreadReject; u++ {
		words = append(words, u.String())
	}
	s, _ := r.choice(n, "unread", words...)
	unread, _ := rules.ParseUnread(s)
	return unread
}
