package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// OriginCount says that about N of a key's counts, at When or soon after, had the same
// route or caller. Senders report it of hot keys alone.
type OriginCount struct {
	Rule int
	Hash uint64 // rules.Hash of the text
	Text []byte
	Kind wire.OriginKind
	Name []byte
	N    int64
	When time.Time
}

// OriginHandler is a [Handler] that wants to know where counts come from.
type OriginHandler interface {
	// Origin takes where counts of a hot key come from. Its bytes are valid only during
	// the call.
	Origin(OriginCount)
}

// origin reads an origin line. It is false if the line is none.
func (d *Decoder) origin(line []byte, when time.Time, h Handler) bool {
	if !wire.IsOrigin(line) {
		return false
	}
	l, err := wire.ParseOrigin(line)
	head, ok := d.headOf(l.Prefix, err)
	if !ok {
		return true
	}
	start := len(d.text) // before are texts of the packet's counts
	text, err := d.encoding.AppendDecoded(d.text, l.Key)
	key := len(text)
	if err == nil {
		text, err = wire.Plain.AppendDecoded(text, l.Name)
	}
	if err != nil {
		d.stats.BadKey.Add(1)
		return true
	}
	text, d.text, key = text[start:], text, key-start
	d.stats.Origins.Add(1)
	if h, wants := h.(OriginHandler); wants {
		h.Origin(OriginCount{Rule: head.rule, Hash: rules.Hash(text[:key]), Text: text[:key], Kind: l.Kind, Name: text[key:], N: l.N, When: when})
	}
	return true
}

// headOf returns the head of the rule that has a prefix, of a line that is no count and was
// read with an error or none. If it is not ok, the line has been counted by the reason.
func (d *Decoder) headOf(prefix []byte, err error) (head lineHead, ok bool) {
	if err != nil {
		d.stats.Malformed.Add(1)
		return head, false
	}
	if head, ok = d.rules[string(prefix)]; !ok {
		d.stats.NoRule.Add(1)
	}
	return head, ok
}
