package snapshot

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// codec writes values to data, or reads them from it. So each part of the format is declared once,
// for both. A reader reads until a value is invalid. Then all further values are zero.
type codec struct {
	data   []byte
	reads  bool
	failed bool // whether a value that was read is invalid
}

func (c *codec) require(valid bool) {
	if c.reads && !valid {
		c.failed, c.data = true, nil
	}
}

func read[N int64 | uint64](c *codec, decode func([]byte) (N, int)) N {
	n, size := decode(c.data)
	if size <= 0 {
		c.require(false)
		return 0
	}
	c.data = c.data[size:]
	return n
}

func (c *codec) uints(all ...*uint64) {
	for _, n := range all {
		if c.reads {
			*n = read(c, binary.Uvarint)
		} else {
			c.data = binary.AppendUvarint(c.data, *n)
		}
	}
}

// int codes n, which is within bounds.
func (c *codec) int(n *int64, low, high int64) {
	if !c.reads {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	if *n = read(c, binary.Varint); *n < low || *n > high {
		c.require(false)
		*n = 0
	}
}

// before codes n by its distance from to, which is within bounds.
func (c *codec) before(n *int64, to, low, high int64) {
	distance := to - *n
	c.int(&distance, low, high)
	*n = to - distance
}

// index codes an index below limit, which is ignored in writing.
func (c *codec) index(i *int, limit int) {
	n := uint64(*i)
	c.uints(&n)
	c.require(n < uint64(limit))
	*i = int(n % math.MaxInt32)
}

// maxTime is far enough from the ends of an int64 for all sums of times and windows.
const maxTime = math.MaxInt64 / 4

func (c *codec) times(all ...*time.Time) {
	for _, t := range all {
		ns := nanos(*t)
		if c.int(&ns, -maxTime, maxTime); !c.reads {
			continue
		}
		if *t = time.Unix(0, ns); ns == 0 {
			*t = time.Time{}
		}
	}
}

// nanos returns an instant in ns since the Unix epoch. The zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func (c *codec) flag(set *bool) {
	n := uint64(0)
	if *set {
		n = 1
	}
	c.uints(&n)
	*set = n != 0
}

// bytes codes a text of at most limit bytes. A text that is read is a part of data.
func (c *codec) bytes(b *[]byte, limit int) {
	n := uint64(len(*b))
	c.uints(&n)
	switch {
	case !c.reads:
		c.data = append(c.data, *b...)
	case n > uint64(len(c.data)) || n > uint64(limit):
		c.require(false)
		*b = nil
	default:
		*b, c.data = c.data[:n:n], c.data[n:]
	}
}

func (c *codec) string(s *string, limit int) {
	b := []byte(*s)
	c.bytes(&b, limit)
	*s = string(b)
}

// list codes a list and its length, each element by element.
func list[T any](c *codec, all *[]T, element func(*T)) {
	n := uint64(len(*all))
	c.uints(&n)
	if !c.reads {
		for i := range *all {
			element(&(*all)[i])
		}
		return
	}
	*all = nil
	for ; n > 0 && !c.failed; n-- { // not made at once: the length is not to be believed
		var x T
		element(&x)
		*all = append(*all, x)
	}
}

// present codes whether *p is nil, and reports whether there is a value to code.
func present[T any](c *codec, p **T) bool {
	set := *p != nil
	if c.flag(&set); set && c.reads {
		*p = new(T)
	}
	return set
}

func (c *codec) sender(s *Sender, rules int) {
	c.string(&s.Name, wire.MaxInstance)
	c.require(wire.ValidInstance(s.Name))
	c.uints(&s.Incarnation, &s.Seq, &s.Sums.Booked, &s.Sums.Loose, &s.Sums.Opened, &s.Sums.Shed, &s.Sums.Parts, &s.Sums.HeldBack, &s.First, &s.Opened, &s.Owed, &s.PrunedTo, &s.PrunedOpened)
	c.times(&s.Start, &s.Heard, &s.Since, &s.PrunedFrom)
	s.Sums.Stated = true
	lost := &s.Carried
	c.uints(&lost.Seq, &lost.Opened, &lost.Loose, &lost.Booked, &lost.HeldBack)
	c.times(&lost.From, &lost.To)
	c.require(max(lost.Loose, lost.Booked, lost.HeldBack) <= wire.MaxCount)
	byRule := s.ByRule.Have != nil
	if c.flag(&byRule); byRule {
		c.uints(&s.ByRule.Seq)
		if c.reads {
			s.ByRule.Have = make([]uint64, 2*rules)
		}
		for i := range s.ByRule.Have {
			c.uints(&s.ByRule.Have[i])
		}
	}
	c.require(s.Seq > 0 && s.First <= s.Seq && s.ByRule.Seq <= s.Seq && lost.Seq <= s.Seq)
}

func (c *codec) key(k *RuleKey, s *Snapshot) {
	c.index(&k.Rule, len(s.Rules))
	c.bytes(&k.Text, rules.MaxText)
	list(c, &k.Views, func(v *WindowCounts) {
		c.counted(&v.Counted, s.Cut)
		list(c, &v.Below, func(b *Below) {
			c.string(&b.Of, math.MaxInt32)
			c.times(&b.Since, &b.Until)
		})
		if present(c, &v.History) {
			c.counted(v.History, s.Cut)
		}
	})
	list(c, &k.Accounts, func(a *AccountRange) {
		c.index(&a.Sender, len(s.Senders))
		counted := a.High - a.Low
		c.uints(&a.Number, &a.Low, &counted, &a.Seq)
		a.High = a.Low + counted
		c.before(&a.Heard, nanos(s.Cut), -maxTime, maxTime)
		c.require(a.Low <= a.High && a.Number > 0)
	})
}

func (c *codec) counted(x *Counted, cut time.Time) {
	c.window(&x.WindowShape, cut)
	c.panes(&x.Counts, x.Newest, 0, wire.MaxCount)
	c.bounds(&x.Bounds, x.Newest, wire.MaxCount)
}

// window codes the shape of a window and its pane at the cut.
func (c *codec) window(w *WindowShape, cut time.Time) {
	pane, panes := int64(w.Pane), uint64(w.Panes)
	c.int(&pane, 1, int64(rules.MaxWindow))
	c.uints(&panes)
	c.int(&w.Newest, -maxTime, maxTime)
	w.Pane, w.Panes = time.Duration(pane), int(min(panes, math.MaxInt32))
	c.require(w.Panes > 0 && (rules.Window{Pane: max(1, w.Pane)}).Index(cut) >= w.Newest-1) // Newest must not move a window on beyond the cut
}

// MaxTotal bounds a count of all keys together. Sums of panes and bounds stay far from
// overflowing.
const MaxTotal = 1 << 50

func (c *codec) reference(r *ReferenceValues, s *Snapshot) {
	c.index(&r.Rule, len(s.Rules))
	c.window(&r.WindowShape, s.Cut)
	c.bounds(&r.Others, r.Newest, MaxTotal)
	if !present(c, &r.Groups) {
		return
	}
	// Counts that were moved to another pane can leave a negative one.
	group := func(g *Group) {
		c.bytes(&g.Name, math.MaxInt32)
		c.panes(&g.Counts, r.Newest, -MaxTotal, MaxTotal)
		c.panes(&g.Again, r.Newest, -MaxTotal, MaxTotal)
	}
	c.bounds(&r.Groups.Bounds, r.Newest, MaxTotal)
	list(c, &r.Groups.Named, group)
	group(&r.Groups.Strays)
	c.panes(&r.Groups.AllAgain, r.Newest, -MaxTotal, MaxTotal)
}

func (c *codec) panes(all *[]Pane, newest, low, high int64) {
	last := int64(math.MinInt64)
	list(c, all, func(p *Pane) {
		c.before(&p.Pane, newest, 0, maxTime)
		c.int(&p.N, low, high)
		c.require(p.Pane > last)
		last = p.Pane
	})
}

func (c *codec) bounds(b *Bounds, newest, limit int64) {
	c.before(&b.Known, newest, -1, maxTime)
	last := int64(math.MinInt64)
	list(c, &b.Lacks, func(l *Lack) {
		c.before(&l.From, newest, -1, maxTime)
		c.int(&l.N, 0, limit)
		c.require(l.From > last)
		last = l.From
	})
	c.int(&b.Later, 0, limit)
}
