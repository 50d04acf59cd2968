package snapshot

import (
	"encoding/binary"
	"time"
)

// MaxSize bounds an encoded snapshot.
const MaxSize = 1 << 20

// maxSums is up to which size the sums of senders by rule are encoded: the rest is for keys.
const maxSums = MaxSize / 4

// magic begins each snapshot. Its last byte is the version of the encoding.
const magic = "hpsnap\x00\x01"

// Append appends s to dst, without the keys that do not fit into MaxSize. It returns how many
// keys these are.
func (s *Snapshot) Append(dst []byte) (_ []byte, dropped int) {
	begin := len(dst)
	e := encoder{append(dst, magic...)}
	e.time(s.Cut)
	e.flag(s.Plain)
	e.uint(uint64(len(s.Rules)))
	for _, r := range s.Rules {
		e.bytes([]byte(r))
	}
	e.uint(uint64(len(s.Senders)))
	for i := range s.Senders {
		e.sender(&s.Senders[i], len(e.to)-begin < maxSums)
	}
	const end = 1 // a byte after the last key
	for i := range s.Keys {
		before := len(e.to)
		e.to = append(e.to, 1)
		if e.key(&s.Keys[i], s.Cut); len(e.to)-begin > MaxSize-end {
			e.to = e.to[:before]
			dropped++
		}
	}
	return append(e.to, 0), dropped
}

type encoder struct{ to []byte }

func (e *encoder) uint(n uint64)      { e.to = binary.AppendUvarint(e.to, n) }
func (e *encoder) int(n int64)        { e.to = binary.AppendVarint(e.to, n) }
func (e *encoder) time(t time.Time)   { e.int(nanos(t)) }
func (e *encoder) since(t, cut int64) { e.int(cut - t) }
func (e *encoder) bytes(b []byte)     { e.uint(uint64(len(b))); e.to = append(e.to, b...) }
func (e *encoder) flag(is bool) {
	n := uint64(0)
	if is {
		n = 1
	}
	e.uint(n)
}

// nanos returns an instant in ns since the Unix epoch. The zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func (e *encoder) sender(s *Sender, sums bool) {
	e.bytes([]byte(s.Name))
	for _, n := range [...]uint64{s.Incarnation, s.Seq, s.Sums.Booked, s.Sums.Loose, s.Sums.Opened, s.Sums.Shed, s.Sums.Parts, s.Sums.HeldBack, s.First, s.Opened, s.Owed, s.PrunedTo, s.PrunedOpened} {
		e.uint(n)
	}
	for _, t := range [...]time.Time{s.Start, s.Heard, s.Since, s.PrunedFrom} {
		e.time(t)
	}
	c := &s.Carried
	for _, n := range [...]uint64{c.Seq, c.Opened, c.Loose, c.Booked, c.HeldBack} {
		e.uint(n)
	}
	e.time(c.From)
	e.time(c.To)
	e.flag(sums && s.ByRule.Have != nil)
	if sums && s.ByRule.Have != nil {
		e.uint(s.ByRule.Seq)
		for _, n := range s.ByRule.Have {
			e.uint(n)
		}
	}
}

func (e *encoder) key(k *Key, cut time.Time) {
	e.uint(uint64(k.Rule))
	e.bytes(k.Text)
	e.uint(uint64(len(k.Views)))
	for i := range k.Views {
		e.view(&k.Views[i])
	}
	e.uint(uint64(len(k.Accounts)))
	for i := range k.Accounts {
		a := &k.Accounts[i]
		for _, n := range [...]uint64{uint64(a.Sender), a.Number, a.Low, a.High - a.Low, a.Seq} {
			e.uint(n)
		}
		e.since(a.Heard, nanos(cut))
	}
}

func (e *encoder) view(v *View) {
	e.int(int64(v.Pane))
	e.uint(uint64(v.Panes))
	e.int(v.Newest)
	e.uint(uint64(len(v.Counts)))
	for _, c := range v.Counts {
		e.int(v.Newest - c.Pane)
		e.int(c.N)
	}
	e.int(v.Newest - v.Known)
	e.uint(uint64(len(v.Lacks)))
	for _, l := range v.Lacks {
		e.int(v.Newest - l.From)
		e.int(l.N)
	}
	e.int(v.Later)
	e.uint(uint64(len(v.Below)))
	for _, b := range v.Below {
		e.int(b.Count)
		e.time(b.Since)
		e.time(b.Until)
	}
}
