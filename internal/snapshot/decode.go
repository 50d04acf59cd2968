package snapshot

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Errors of Parse.
var (
	ErrVersion   = errors.New("it is of another version, or no snapshot")
	ErrMalformed = errors.New("it is malformed")
)

// Parse reads the output of Append. The memory that it takes is bounded by the length of data.
func Parse(data []byte) (*Snapshot, error) {
	if len(data) < len(magic) || len(data) > MaxSize || string(data[:len(magic)]) != magic {
		return nil, ErrVersion
	}
	d := decoder{data[len(magic):], true}
	s := &Snapshot{Cut: d.time(), Plain: d.uint() != 0}
	for n := d.uint(); n > 0 && d.ok; n-- {
		s.Rules = append(s.Rules, string(d.bytes(math.MaxInt32)))
	}
	for n := d.uint(); n > 0 && d.ok; n-- {
		s.Senders = append(s.Senders, d.sender(len(s.Rules)))
	}
	if s.Costs = d.bytes(MaxCosts); len(s.Costs) == 0 {
		s.Costs = nil
	}
	for d.ok && d.byte() != 0 {
		k := d.key(s.Cut)
		d.require(k.Rule < len(s.Rules))
		for i := range k.Accounts {
			d.require(k.Accounts[i].Sender < len(s.Senders))
		}
		s.Keys = append(s.Keys, k)
	}
	for d.ok && d.byte() != 0 {
		r := d.reference(s.Cut)
		d.require(r.Rule < len(s.Rules))
		s.References = append(s.References, r)
	}
	if !d.ok || len(d.unread) > 0 {
		return nil, ErrMalformed
	}
	return s, nil
}

// decoder reads values until one is invalid. Then all further values are zero.
type decoder struct {
	unread []byte
	ok     bool
}

func (d *decoder) require(valid bool) {
	if !valid {
		d.ok, d.unread = false, nil
	}
}

func (d *decoder) byte() byte {
	if len(d.unread) == 0 {
		d.require(false)
		return 0
	}
	b := d.unread[0]
	d.unread = d.unread[1:]
	return b
}

func (d *decoder) uint() uint64 { return number(d, binary.Uvarint) }

func (d *decoder) int() int64 { return number(d, binary.Varint) }

func number[N int64 | uint64](d *decoder, read func([]byte) (N, int)) N {
	n, size := read(d.unread)
	if size <= 0 {
		d.require(false)
		return 0
	}
	d.unread = d.unread[size:]
	return n
}

func (d *decoder) within(n, low, high int64) int64 {
	if n < low || n > high {
		d.require(false)
		return 0
	}
	return n
}

// index reads an index of a list.
func (d *decoder) index() int {
	n := d.uint()
	d.require(n < math.MaxInt32)
	return int(n % math.MaxInt32)
}

// maxTime is far enough from the ends of an int64 for all sums of times and windows.
const maxTime = math.MaxInt64 / 4

func (d *decoder) time() time.Time {
	ns := d.within(d.int(), -maxTime, maxTime)
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func (d *decoder) bytes(limit int) []byte {
	n := d.uint()
	if n > uint64(len(d.unread)) || n > uint64(limit) {
		d.require(false)
		return nil
	}
	b := d.unread[:n:n]
	d.unread = d.unread[n:]
	return b
}

func (d *decoder) sender(rules int) (s Sender) {
	s.Name = string(d.bytes(wire.MaxInstance))
	d.require(wire.ValidInstance(s.Name))
	for _, n := range [...]*uint64{&s.Incarnation, &s.Seq, &s.Sums.Booked, &s.Sums.Loose, &s.Sums.Opened, &s.Sums.Shed, &s.Sums.Parts, &s.Sums.HeldBack, &s.First, &s.Opened, &s.Owed, &s.PrunedTo, &s.PrunedOpened} {
		*n = d.uint()
	}
	for _, t := range [...]*time.Time{&s.Start, &s.Heard, &s.Since, &s.PrunedFrom} {
		*t = d.time()
	}
	s.Sums.Stated = true
	c := &s.Carried
	for _, n := range [...]*uint64{&c.Seq, &c.Opened, &c.Loose, &c.Booked, &c.HeldBack} {
		*n = d.uint()
	}
	c.From, c.To = d.time(), d.time()
	d.require(max(c.Loose, c.Booked, c.HeldBack) <= wire.MaxCount)
	if d.uint() != 0 {
		s.ByRule.Seq = d.uint()
		for n := 2 * rules; n > 0 && d.ok; n-- {
			s.ByRule.Have = append(s.ByRule.Have, d.uint())
		}
	}
	d.require(s.Seq > 0 && s.First <= s.Seq && s.ByRule.Seq <= s.Seq && c.Seq <= s.Seq)
	return s
}

func (d *decoder) key(cut time.Time) (k RuleKey) {
	k.Rule = d.index()
	k.Text = d.bytes(rules.MaxText)
	for n := d.uint(); n > 0 && d.ok; n-- {
		k.Views = append(k.Views, d.view(cut))
	}
	for n := d.uint(); n > 0 && d.ok; n-- {
		a := AccountRange{Sender: d.index(), Number: d.uint(), Low: d.uint()}
		a.High, a.Seq = a.Low+d.uint(), d.uint()
		a.Heard = nanos(cut) - d.within(d.int(), -maxTime, maxTime)
		d.require(a.Low <= a.High && a.Number > 0)
		k.Accounts = append(k.Accounts, a)
	}
	return k
}

func (d *decoder) view(cut time.Time) (v WindowCounts) {
	v.Counted = d.counted(cut)
	for n := d.uint(); n > 0 && d.ok; n-- {
		v.Below = append(v.Below, Below{string(d.bytes(math.MaxInt32)), d.time(), d.time()})
	}
	if d.uint() != 0 {
		h := d.counted(cut)
		v.History = &h
	}
	return v
}

func (d *decoder) counted(cut time.Time) (c Counted) {
	c.WindowShape = d.window(cut)
	c.Counts = d.panes(c.Newest, 0, wire.MaxCount)
	c.Bounds = d.bounds(c.Newest, wire.MaxCount)
	return c
}

// window reads the shape of a window and its pane at the cut.
func (d *decoder) window(cut time.Time) (w WindowShape) {
	w.Pane = time.Duration(d.within(d.int(), 1, int64(rules.MaxWindow)))
	w.Panes = int(min(d.uint(), math.MaxInt32))
	w.Newest = d.within(d.int(), -maxTime, maxTime)
	d.require(w.Panes > 0 && (rules.Window{Pane: max(1, w.Pane)}).Index(cut) >= w.Newest-1) // Newest must not move a window on beyond the cut
	return w
}

// MaxTotal bounds a count of all keys together. Sums of panes and bounds stay far from
// overflowing.
const MaxTotal = 1 << 50

func (d *decoder) reference(cut time.Time) (r ReferenceValues) {
	r.Rule = d.index()
	r.WindowShape = d.window(cut)
	r.Others = d.bounds(r.Newest, MaxTotal)
	if d.uint() == 0 {
		return r
	}
	r.Groups = &GroupTotals{Bounds: d.bounds(r.Newest, MaxTotal)}
	for n := d.uint(); n > 0 && d.ok; n-- {
		r.Groups.Named = append(r.Groups.Named, d.group(r.Newest))
	}
	r.Groups.Strays = d.group(r.Newest)
	r.Groups.AllAgain = d.panes(r.Newest, -MaxTotal, MaxTotal)
	return r
}

// group reads a group. Counts that were moved to another pane can leave a negative one.
func (d *decoder) group(newest int64) (g Group) {
	g.Name = d.bytes(math.MaxInt32)
	g.Counts = d.panes(newest, -MaxTotal, MaxTotal)
	g.Again = d.panes(newest, -MaxTotal, MaxTotal)
	return g
}

func (d *decoder) panes(newest, low, high int64) (all []Pane) {
	last := int64(math.MinInt64)
	for n := d.uint(); n > 0 && d.ok; n-- {
		c := Pane{newest - d.within(d.int(), 0, maxTime), d.within(d.int(), low, high)}
		d.require(c.Pane > last)
		last = c.Pane
		all = append(all, c)
	}
	return all
}

func (d *decoder) bounds(newest, limit int64) (b Bounds) {
	b.Known = newest - d.within(d.int(), -1, maxTime)
	last := int64(math.MinInt64)
	for n := d.uint(); n > 0 && d.ok; n-- {
		l := Lack{newest - d.within(d.int(), -1, maxTime), d.within(d.int(), 0, limit)}
		d.require(l.From > last)
		last = l.From
		b.Lacks = append(b.Lacks, l)
	}
	b.Later = d.within(d.int(), 0, limit)
	return b
}
