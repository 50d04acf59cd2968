package snapshot

import (
	"encoding/binary"
	"slices"
	"time"
)

// MaxSize bounds an encoded snapshot.
const MaxSize = 1 << 20

// MaxCosts bounds the costs in a snapshot.
const MaxCosts = MaxSize / 8

// maxSums is the size up to which the sums of senders by rule are encoded. The rest is for
// keys.
const maxSums = MaxSize / 4

// magic begins each snapshot. Its last byte is the version of the encoding.
const magic = "hpsnap\x00\x03"

// Append appends s to dst, without the keys that do not fit into MaxSize, and returns the
// number of those keys. The references of keys take at most half of MaxSize. A group without
// room is unknown to the next process.
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
	if len(s.Costs) <= MaxCosts {
		e.bytes(s.Costs)
	} else {
		e.bytes(nil)
	}
	references, room := s.fitReferences()
	for i := range s.Keys {
		before := len(e.to)
		e.to = append(e.to, 1)
		if e.key(&s.Keys[i], s.Cut); len(e.to)-begin > MaxSize-room {
			e.to = e.to[:before]
			dropped++
			for j := range references {
				references[j].leaveOut(&s.Keys[i])
			}
		}
	}
	e.to = append(e.to, 0)
	for i := range references {
		if start := len(e.to); len(e.to)-begin < MaxSize {
			e.to = append(e.to, 1)
			if e.reference(&references[i]); len(e.to)-begin > MaxSize-1 {
				e.to = e.to[:start]
			}
		}
	}
	return append(e.to, 0), dropped
}

// fitReferences returns copies of the references, with the groups that fit, and the room that
// they take.
func (s *Snapshot) fitReferences() (fit []ReferenceValues, room int) {
	const ends = 2 // a byte after the last key, and after the last reference
	room = ends
	var e encoder
	for _, r := range s.References {
		e.to = e.to[:0]
		if e.reference(&r); room+len(e.to) > MaxSize/2 {
			r.Groups = nil
			e.to = e.to[:0]
			e.reference(&r)
		}
		const more = 1 + 3*binary.MaxVarintLen64 // the byte before it, and a bound for the keys that do not fit
		room += len(e.to) + more
		fit = append(fit, r)
	}
	return fit, min(room, MaxSize/2)
}

// leaveOut includes a key, which is not in the snapshot, in the bounds of r.Others.
func (r *ReferenceValues) leaveOut(k *RuleKey) {
	if k.Rule != r.Rule || r.Others.Known > r.Newest {
		return
	}
	i := slices.IndexFunc(k.Views, func(v WindowCounts) bool { return v.Pane == r.Pane && v.Panes == r.Panes })
	if i < 0 {
		return // it is one of the others already
	}
	v := &k.Views[i]
	if v.Known > r.Others.Known {
		r.Others = Bounds{Known: r.Newest + 1}
		return
	}
	n := v.MaxLack()
	for _, c := range v.Counts {
		if c.Pane >= r.Others.Known {
			n += c.N
		}
	}
	r.Others.Lacks = []Lack{{r.Others.Known, max(n, r.Others.MaxLack())}}
}

type encoder struct{ to []byte }

func (e *encoder) uint(n uint64)      { e.to = binary.AppendUvarint(e.to, n) }
func (e *encoder) int(n int64)        { e.to = binary.AppendVarint(e.to, n) }
func (e *encoder) time(t time.Time)   { e.int(nanos(t)) }
func (e *encoder) since(t, cut int64) { e.int(cut - t) }
func (e *encoder) bytes(b []byte)     { e.uint(uint64(len(b))); e.to = append(e.to, b...) }
func (e *encoder) flag(set bool) {
	n := uint64(0)
	if set {
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
	sums = sums && s.ByRule.Have != nil
	e.flag(sums)
	if sums {
		e.uint(s.ByRule.Seq)
		for _, n := range s.ByRule.Have {
			e.uint(n)
		}
	}
}

func (e *encoder) key(k *RuleKey, cut time.Time) {
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

func (e *encoder) view(v *WindowCounts) {
	e.counted(&v.Counted)
	e.uint(uint64(len(v.Below)))
	for _, b := range v.Below {
		e.bytes([]byte(b.Of))
		e.time(b.Since)
		e.time(b.Until)
	}
	e.flag(v.History != nil)
	if v.History != nil {
		e.counted(v.History)
	}
}

func (e *encoder) counted(c *Counted) {
	e.window(c.WindowShape)
	e.panes(c.Counts, c.Newest)
	e.bounds(&c.Bounds, c.Newest)
}

func (e *encoder) window(w WindowShape) {
	e.int(int64(w.Pane))
	e.uint(uint64(w.Panes))
	e.int(w.Newest)
}

func (e *encoder) reference(r *ReferenceValues) {
	e.uint(uint64(r.Rule))
	e.window(r.WindowShape)
	e.bounds(&r.Others, r.Newest)
	e.flag(r.Groups != nil)
	if g := r.Groups; g != nil {
		e.bounds(&g.Bounds, r.Newest)
		e.uint(uint64(len(g.Named)))
		for i := range g.Named {
			e.group(&g.Named[i], r.Newest)
		}
		e.group(&g.Strays, r.Newest)
		e.panes(g.AllAgain, r.Newest)
	}
}

func (e *encoder) group(g *Group, newest int64) {
	e.bytes(g.Name)
	e.panes(g.Counts, newest)
	e.panes(g.Again, newest)
}

func (e *encoder) panes(all []Pane, newest int64) {
	e.uint(uint64(len(all)))
	for _, c := range all {
		e.int(newest - c.Pane)
		e.int(c.N)
	}
}

func (e *encoder) bounds(b *Bounds, newest int64) {
	e.int(newest - b.Known)
	e.uint(uint64(len(b.Lacks)))
	for _, l := range b.Lacks {
		e.int(newest - l.From)
		e.int(l.N)
	}
	e.int(b.Later)
}
