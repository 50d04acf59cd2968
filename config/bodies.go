package config

import "github.com/hotparam/hotparam/rules"

var bodiesSection = section{
	name: "bodies", prefix: "bodies.",
	fields:  []string{"max", "total"},
	example: "for example bodies: {max: 64KiB, total: 64MiB}",
}

// bodies reads how much of requests' bodies is held.
func (d *decoder) bodies(n *node) (b rules.Bodies) {
	v := d.section(n, bodiesSection)
	if v == nil {
		return b
	}
	if len(n.fields) == 0 {
		d.reject(n, bodiesSection.example, "bodies is empty")
	}
	b.Max = d.bodySize(v.get("max"), "bodies.max", "64KiB")
	b.Total = d.bodySize(v.get("total"), "bodies.total", "64MiB")
	return b
}

// bodySize reads a size, whose bounds package rules judges; 0 if there is none.
func (d *decoder) bodySize(n *node, what, example string) int64 {
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
}

// unread reads what becomes of requests whose body cannot be read.
func (r *ruleReader) unread(n *node) rules.Unread {
	var words []string
	for u := rules.UnreadLimit; u <= rules.UnreadReject; u++ {
		words = append(words, u.String())
	}
	s, _ := r.choice(n, "unread", words...)
	unread, _ := rules.ParseUnread(s)
	return unread
}
