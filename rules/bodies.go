package rules

import (
	"fmt"
	"slices"
)

// Bodies bounds the bodies of requests that a guard holds to read the parameters of [Form]
// and [JSON]. The zero value has the defaults.
type Bodies struct {
	// Max is the size of the largest body that is read, in bytes. Zero means
	// [DefaultMaxBody].
	Max int64
	// Total is the number of bytes of bodies that a guard holds at a time, over all requests.
	// Zero means 64 MiB, or Max if that is more.
	Total int64
}

// Defaults and bounds of [Bodies], in bytes.
const (
	DefaultMaxBody     = 64 << 10
	defaultTotalBodies = 64 << 20
	maxBody            = 64 << 20
)

// WithDefaults returns b with its zeros replaced by the defaults.
func (b Bodies) WithDefaults() Bodies {
	if b.Max == 0 {
		b.Max = DefaultMaxBody
	}
	if b.Total == 0 {
		b.Total = max(defaultTotalBodies, b.Max)
	}
	return b
}

func (b Bodies) validate() (bad FieldErrors) {
	if b.Max < 0 || b.Max > maxBody {
		bad.add("bodies.max", quoted(fmt.Sprint(b.Max)), "for example 64KiB: each such body is held in memory while it is read", "want a size of 1 byte to %dMiB", maxBody>>20).needs("bodies.max")
		return bad
	}
	if b.Total < 0 || b.Total < b.WithDefaults().Max && b.Total != 0 {
		bad.add("bodies.total", quoted(fmt.Sprint(b.Total)), "for example 64MiB, for a thousand bodies of 64KiB at a time", "want a size of at least bodies.max").needs("bodies.total", "bodies.max")
	}
	return bad
}

// Unread is the treatment of a request whose body cannot be read, by a rule that keys or matches
// on parameters of the body. A body cannot be read if it is too large, compressed or broken, if
// reading it failed, or if there is no room for it.
type Unread uint8

// Ways to treat such a request.
const (
	// UnreadLimit counts all such requests on one key, under the rule's limit.
	UnreadLimit  Unread = iota
	UnreadPass          // the rule does not apply
	UnreadReject        // it is refused
)

var unreadNames = [...]string{"limit", "pass", "reject"}

// String returns the word of the rules file.
func (u Unread) String() string { return nameOf(unreadNames[:], u) }

// ReadsBody reports whether the source is a part of a request's body.
func (s Source) ReadsBody() bool { return s == Form || s == JSON }

// DependsOnBody reports whether the rule's keys or its match name parameters of the body.
func (r *Rule) DependsOnBody() bool {
	return slices.ContainsFunc(r.By.Names, func(p Param) bool { return p.Source.ReadsBody() }) ||
		slices.ContainsFunc(r.Match.Query, func(q QueryMatch) bool { return q.Param().Source.ReadsBody() })
}

func (r *Rule) validateUnread(bad *FieldErrors) {
	switch {
	case r.Unread > UnreadReject:
		bad.add("unread", "", "want limit, pass or reject", "%d is none", r.Unread)
	case r.Unread != UnreadLimit && !r.DependsOnBody():
		bad.add("unread", "", "remove it, or name a parameter such as form:user or json:user.id", "neither by nor match names a parameter of the body").needs("by", "match")
	}
}
