package aggregator

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// Save has each shard copy at most so many of its keys, with their counts, when it has counted
// all that the feeds have passed on by now. No feed may be used during the call. wait waits
// for the copies and returns them, those nearest to a threshold first, and how many keys more
// there are. Bounds leave out the gaps that are carried, by their IDs.
func (s *Shards) Save(most int, carried map[uint64]bool) (wait func() (keys []snapshot.Key, dropped int)) {
	type part struct {
		keys    []snapshot.Key
		dropped int
	}
	parts := make(chan part, len(s.shards))
	for _, shard := range s.shards {
		shard.afterQueued(func(d *Detector) {
			d.missing.LeaveOut(carried)
			keys, dropped := d.save(most / len(s.shards))
			d.missing.LeaveOut(nil)
			parts <- part{keys, dropped}
		})
	}
	return func() (keys []snapshot.Key, dropped int) {
		for range s.shards {
			p := <-parts
			keys, dropped = append(keys, p.keys...), dropped+p.dropped
		}
		slices.SortStableFunc(keys, func(a, b snapshot.Key) int { return cmp.Compare(b.Nearness, a.Nearness) })
		return keys, dropped
	}
}

// Resume adds to each shard the counts of its keys that another process saved, numbered by the
// rules in force, and then what f reports of the packets in between. No feed may be used during
// the call. It waits until what the feeds have passed on is counted.
func (s *Shards) Resume(keys []snapshot.Key, f func(decode.Handler)) {
	feed := &Feed{turns: s.feeds[0].turns, shards: s.shards, homes: s.feeds[0].homes}
	for _, shard := range s.shards {
		shard.lockIdle()
		defer shard.mu.Unlock()
		feed.batches = append(feed.batches, new(batch))
	}
	for i := range keys {
		k := &keys[i]
		hash := rules.Hash(k.Text)
		s.shards[feed.place(k.Rule, hash)].detector.resume(k, hash)
	}
	f(feed)
	for i, shard := range s.shards {
		shard.take(feed.batches[i])
	}
}

// save copies the hot keys, and those of half a threshold or more: of more than most the hot
// ones first, and then those nearest to their threshold.
func (d *Detector) save(most int) (keys []snapshot.Key, dropped int) {
	type named struct {
		rule     *ruleWatch
		text     string
		hash     uint64
		nearness float64
	}
	var all []named
	for _, r := range d.watches {
		near := make(map[string]named)
		for _, v := range r.views {
			v.Each(max(1, v.least/2), func(i int32) {
				text, share := v.Name(i), float64(v.Sum(i, v.Now()))/float64(v.least)
				if n, ok := near[string(text)]; !ok || n.nearness < share {
					near[string(text)] = named{r, string(text), v.Hash(i), share}
				}
			})
		}
		for _, w := range r.hot {
			near[w.text] = named{r, w.text, w.hash, math.Inf(1)}
		}
		for _, n := range near {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.nearness, a.nearness), cmp.Compare(a.text, b.text))
	})
	for _, n := range all[:min(len(all), most)] {
		k := snapshot.Key{Rule: n.rule.number, Text: []byte(n.text), Nearness: n.nearness}
		w := n.rule.keys[n.text]
		for _, v := range n.rule.views {
			i := v.Find(n.hash, k.Text)
			if i < 0 {
				continue
			}
			if saved, ok := v.Save(i); ok {
				saved.Below = w.savedBelow(v)
				k.Views = append(k.Views, saved)
			}
		}
		if len(k.Views) > 0 {
			keys = append(keys, k)
		}
	}
	return keys, max(0, len(all)-most)
}

// savedBelow returns since when the windows of v have been below the exits of the thresholds
// that hold w hot. Only thresholds on counts are saved: their exit stays. A nil w has none.
func (w *watched) savedBelow(v *view) (below []snapshot.Below) {
	if w == nil {
		return nil
	}
	for _, t := range v.thresholds {
		if m := &w.marks[t.number]; m.hot && t.Kind == rules.Absolute && !m.below.IsZero() {
			below = append(below, snapshot.Below{Count: t.Rate.N, Since: m.below, Until: v.Start(v.closed + 1)})
		}
	}
	return below
}

// resume adds the counts of a key of another process to the windows of the same shape.
func (d *Detector) resume(k *snapshot.Key, hash uint64) {
	r := d.rules[k.Rule]
	if r == nil {
		return
	}
	for i := range k.Views {
		saved := &k.Views[i]
		at := slices.IndexFunc(r.views, func(v *view) bool { return v.Pane == saved.Pane && v.Panes == saved.Panes })
		if at < 0 {
			continue
		}
		v := r.views[at]
		if v.Resume(hash, k.Text, saved, v.least) < 0 {
			d.unnamed++
			continue
		}
		if n := len(saved.Counts); n > 0 {
			last := saved.Counts[n-1].Pane
			v.newest, v.busy = max(v.newest, last), max(v.busy, max(last, v.Now())+int64(v.Panes))
		}
		if len(saved.Below) > 0 {
			if v.saved == nil {
				v.saved = make(map[string]*snapshot.View)
			}
			v.saved[string(k.Text)] = saved
		}
	}
}

// savedMark is what another process knew of a key that t held hot, up to its cut.
type savedMark struct {
	below, until time.Time // windows that ended in between were below the exit
	view         *snapshot.View
}

// takeSaved returns what another process knew of a key by t, or nil.
func (t *threshold) takeSaved(text string) *savedMark {
	view := t.view.saved[text]
	if view == nil || t.Kind != rules.Absolute {
		return nil
	}
	for _, b := range view.Below {
		if b.Count == t.Rate.N {
			return &savedMark{b.Since, b.Until, view}
		}
	}
	return nil
}

// holds reports whether all windows that ended after those that s knows, up to a pane, were
// below the exit: all that they can have together is.
func (s *savedMark) holds(w *watched, v *view, pane, exit int64) bool {
	first := v.Index(s.until) - int64(v.Panes) + 1
	kept := max(first, v.Now()-v.Kept()+1)
	if kept > s.view.Newest+1 || first < s.view.Known {
		return false
	}
	_, sum := v.Span(w.hash, []byte(w.text), pane, pane-kept+1)
	if sum == rules.Unknown {
		return false
	}
	for _, c := range s.view.Counts {
		if first <= c.Pane && c.Pane < kept {
			sum += c.N
		}
	}
	if kept > first {
		most := int64(0)
		for _, l := range s.view.Lacks {
			most = max(most, l.N)
		}
		sum += most
	}
	return sum < exit
}
