package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// OriginCount reports that about N of a key's counts, at When or soon after, had the same route
// or caller. Senders report it for hot keys alone.
type OriginCount struct {
	Rule int
	Hash uint64 // rules.Hash of the text
	Text []byte
	Kind wire.OriginKind
	Name []byte
	N    int64
	When time.Time
}

// OriginHandler is a [Handler] that receives the origins of counts.
type OriginHandler interface {
	// AddOrigin receives an origin of the counts of a hot key. Its bytes are valid only during
	// the call.
	AddOrigin(OriginCount)
}

// readOrigin reads an origin line. It returns false for any other line.
func (d *Decoder) readOrigin(line []byte, when time.Time, h Handler) bool {
	if !wire.IsOrigin(line) {
		return false
	}
	l, err := wire.ParseOrigin(line)
	head, ok := d.headOf(l.Prefix, err)
	if !ok {
		return true
	}
	start := len(d.text) // d.text already holds texts of the packet's counts
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
		h.AddOrigin(OriginCount{Rule: head.rule, Hash: rules.Hash(text[:key]), Text: text[:key], Kind: l.Kind, Name: text[key:], N: l.N, When: when})
	}
	return true
}

// headOf returns the head of the rule with a prefix, for a line that is no count. err is the
// error of reading that line. If ok is false, the line has been counted by the reason.
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
