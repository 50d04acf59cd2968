package aggregator

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// Feed is the [decode.Handler] of one reader: between Begin and End it collects the counts for
// each shard. A Feed must not be used by several goroutines at a time.
type Feed interface {
	decode.PacketHandler
	// Begin prepares for the counts of one read. It waits while a shard is too far behind.
	Begin()
	// End passes on the counts of one read. Its first packet arrived at arrived, and all packets
	// that reached the reader before now have been read. The caller counts them itself, unless it
	// is behind or the shard is busy. End must be called at least once each [decode.Tick], without
	// counts if none arrived, so that all shards know the time.
	End(arrived, now time.Time, behind bool)
}

// feed implements [Feed].
type feed struct {
	reader  int
	turns   *atomic.Int64 // order in which all readers report missing packets
	shards  []*shard
	homes   []int // by rule, the shard that has all its keys, or -1
	batches []*shardBatch
	ticked  time.Time // when all shards last received the time
}

// newFeeds returns a feed for each reader of the shards.
func newFeeds(shards []*shard, rules *rules.Rules) []*feed {
	feeds, turns := make([]*feed, len(shards[0].read)), new(atomic.Int64)
	for i := range feeds {
		feeds[i] = &feed{
			reader: i, turns: turns, shards: shards, homes: homes(rules, len(shards)), batches: make([]*shardBatch, len(shards)),
		}
	}
	return feeds
}

func (f *feed) Begin() {
	for i, shard := range f.shards {
		if f.batches[i] == nil {
			f.batches[i] = <-shard.free
		}
	}
}

func (f *feed) End(arrived, now time.Time, behind bool) {
	since := now.Sub(f.ticked)
	all := since >= decode.Tick || since < 0
	if all {
		f.ticked = now
	}
	for k := range f.shards {
		i := (k + f.reader) % len(f.shards) // readers begin at different shards
		shard, b := f.shards[i], f.batches[i]
		if !all && b.isEmpty() {
			continue
		}
		b.reader, b.arrived, b.now = f.reader, arrived, now
		if !behind && shard.tryWork(b) {
			b.reset()
			continue
		}
		shard.pending.Add(1)
		shard.queue <- b // has room for all batches that exist
		f.batches[i] = nil
	}
}

func (f *feed) Count(c decode.Count) { f.Counts([]decode.Count{c}) }

func (f *feed) Counts(counts []decode.Count) {
	if len(counts) == 0 {
		return
	}
	for _, b := range f.batches {
		b.beginPacket(&counts[0])
	}
	for i := range counts {
		c := &counts[i]
		f.batches[f.place(c.Rule, c.Hash)].add(c)
	}
}

// place returns the number of the shard that counts a key.
func (f *feed) place(rule int, hash uint64) int {
	if home := f.homes[rule]; home >= 0 {
		return home
	}
	return int(hash>>56) * len(f.shards) >> 8 // the windows' indexes and cells use lower bits
}

// report makes a report to each shard, before the counts of its batch.
func (f *feed) report(report func(*shard)) {
	for _, b := range f.batches {
		b.before = append(b.before, report)
	}
}

func (f *feed) AddHiddenCounts(when time.Time, n int64) {
	f.report(func(s *shard) { s.detector.AddHiddenCounts(when, n) })
}

// SetHeldBackBound, RecordLoss and ReduceLoss are
// called with the senders' lock held, so turns are the order of the decoders' reports.
func (f *feed) SetHeldBackBound(rule int, n, outsideGroups int64) {
	turn := f.turns.Add(1)
	f.report(func(s *shard) {
		if isNewest(&s.bounds[rule], turn) {
			s.detector.SetHeldBackBound(rule, n, outsideGroups)
		}
	})
}

func (f *feed) AddHeldBack(x decode.HeldBack) {
	x.Group = bytes.Clone(x.Group)
	b := f.batches[max(0, f.homes[x.Rule])] // a rule with a share has a home
	b.before = append(b.before, func(s *shard) { s.detector.AddHeldBack(x) })
}

func (f *feed) RecordLoss(when time.Time) {
	f.reportLoss(func(d *Detector) { d.RecordLoss(when) })
}

func (f *feed) ReduceLoss(newest time.Time) {
	f.reportLoss(func(d *Detector) { d.ReduceLoss(newest) })
}

func (f *feed) reportLoss(report func(*Detector)) {
	turn := f.turns.Add(1)
	f.report(func(s *shard) {
		if isNewest(&s.losses, turn) {
			report(s.detector)
		}
	})
}

// isNewest reports whether a report with a turn replaces the newest one so far. It does not if a
// later report of another reader has overtaken it.
func isNewest(newest *int64, turn int64) bool {
	if turn <= *newest {
		return false
	}
	*newest = turn
	return true
}

// A gap only becomes smaller, so the order does not
// matter.
func (f *feed) RecordGap(g decode.Gap) {
	f.report(func(s *shard) { s.detector.RecordGap(g) })
}

func (f *feed) ExcludeFromGap(gap uint64, rule int, hash uint64, known bool) {
	b := f.batches[f.place(rule, hash)]
	b.excluded = append(b.excluded, excludedKey{gap, hash, rule, known})
}

func (f *feed) AddHealedCount(c decode.Count, until time.Time) {
	c.Text = bytes.Clone(c.Text)
	b := f.batches[f.place(c.Rule, c.Hash)]
	b.after = append(b.after, func(s *shard) { s.detector.AddHealedCount(c, until) })
}

func (f *feed) MoveHealedCount(c decode.Count, from, to time.Time) {
	c.Text = bytes.Clone(c.Text)
	b := f.batches[f.place(c.Rule, c.Hash)]
	b.after = append(b.after, func(s *shard) { s.detector.MoveHealedCount(c, from, to) })
}

func (f *feed) AddOrigin(o decode.OriginCount) {
	o.Text, o.Name = bytes.Clone(o.Text), bytes.Clone(o.Name)
	b := f.batches[f.place(o.Rule, o.Hash)]
	b.before = append(b.before, func(s *shard) { s.detector.AddOrigin(o) })
}

// homes returns, by rule number, the part that counts all keys of a rule which must be counted
// in one place, and -1 for other rules. The former are rules that compare keys, and rules whose
// requests have several keys.
func homes(rules *rules.Rules, parts int) []int {
	home, pools := make([]int, len(rules.Rules)), make(map[string]int)
	for i := range home {
		rule := &rules.Rules[i]
		if home[i] = -1; rule.Whole() || rule.Overlaps() {
			home[i] = i % parts
		}
		if !rule.HasCost() {
			continue
		}
		if first, ok := pools[rule.Pool()]; ok {
			home[i] = first
		} else {
			pools[rule.Pool()] = home[i]
		}
	}
	return home
}
