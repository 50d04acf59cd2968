package aggregator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/blame"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// Save makes each shard copy its keys, with their counts and the references that they are
// compared with. limit bounds the keys of all shards together. A shard copies when it has
// counted all that the feeds have passed on by now. No feed may be used during the call. Bounds
// leave out the carried gaps, given by their IDs.
//
// wait waits for the copies and adds them to a snapshot, the keys nearest to a threshold first.
// It returns the number of further keys.
func (s *Shards) Save(limit int, carried map[uint64]bool) (wait func(to *snapshot.Snapshot) (dropped int)) {
	parts := make(chan saved, len(s.shards))
	for _, shard := range s.shards {
		shard.afterQueued(func(d *Detector) {
			d.missing.LeaveOut(carried)
			part := d.save(limit / len(s.shards))
			d.missing.LeaveOut(nil)
			parts <- part
		})
	}
	return func(to *snapshot.Snapshot) (dropped int) {
		var keys []snapshot.RuleKey
		costs := make(map[string]blame.State)
		for range s.shards {
			p := <-parts
			keys, dropped = append(keys, p.keys...), dropped+p.dropped
			for i := range p.references {
				addReference(to, &p.references[i])
			}
			maps.Copy(costs, p.costs)
		}
		if len(costs) > 0 {
			to.Costs, _ = json.Marshal(costs) // without them, the successor learns anew
		}
		slices.SortStableFunc(keys, func(a, b snapshot.RuleKey) int { return cmp.Compare(b.Nearness, a.Nearness) })
		to.Attach(keys)
		return dropped
	}
}

// saved is the part of a snapshot from one shard.
type saved struct {
	keys       []snapshot.RuleKey
	references []snapshot.ReferenceValues
	dropped    int
	costs      map[string]blame.State // by pool
}

// Resume adds to each shard the counts of its keys that another process saved, numbered by the
// rules in force, and the references that they are compared with. Then it adds f's reports of
// the packets in between. No feed may be used during the call. It waits until all counts that
// the feeds have passed on are counted.
func (s *Shards) Resume(from *snapshot.Snapshot, f func(decode.Handler)) {
	feed := &feed{turns: s.feeds[0].turns, shards: s.shards, homes: s.feeds[0].homes}
	for _, shard := range s.shards {
		shard.lockIdle()
		defer shard.mu.Unlock()
		feed.batches = append(feed.batches, new(shardBatch))
	}
	for i := range from.Keys {
		k := &from.Keys[i]
		hash := rules.Hash(k.Text)
		s.shards[feed.place(k.Rule, hash)].detector.resume(k, hash)
	}
	for i := range from.References {
		for _, shard := range s.shards {
			shard.detector.resumeReference(&from.References[i])
		}
	}
	var costs map[string]blame.State
	if json.Unmarshal(from.Costs, &costs) == nil {
		for _, shard := range s.shards {
			shard.detector.costs.load(costs)
		}
	}
	f(feed)
	for i, shard := range s.shards {
		shard.applyBatch(feed.batches[i])
	}
}

// save copies the hot keys, and the keys with half a threshold or more. If there are more than
// limit, it prefers the hot ones, and then those nearest to their threshold.
func (d *Detector) save(limit int) (s saved) {
	type nearKey struct {
		rule     *ruleWatch
		text     string
		hash     uint64
		nearness float64
	}
	var all []nearKey
	for _, r := range d.watches {
		near := make(map[string]nearKey)
		for _, v := range r.views {
			v.Each(max(1, v.least/2), func(i int32) {
				text, share := v.Name(i), float64(v.Sum(i, v.Now()))/float64(v.least)
				if n, ok := near[string(text)]; !ok || n.nearness < share {
					near[string(text)] = nearKey{r, string(text), v.Hash(i), share}
				}
			})
		}
		for _, w := range r.hot {
			near[w.text] = nearKey{r, w.text, w.hash, math.Inf(1)}
		}
		for _, n := range near {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b nearKey) int {
		return cmp.Or(cmp.Compare(b.nearness, a.nearness), cmp.Compare(a.text, b.text))
	})
	entries := make(map[*view]map[int32]bool)
	for _, n := range all[:min(len(all), limit)] {
		k := snapshot.RuleKey{Rule: n.rule.number, Text: []byte(n.text), Nearness: n.nearness}
		w := n.rule.keys[n.text]
		for _, v := range n.rule.views {
			i := v.Find(n.hash, k.Text)
			if i < 0 {
				continue
			}
			if counted, ok := v.Save(i); ok {
				copied := snapshot.WindowCounts{Counted: counted, Below: w.savedBelow(v)}
				if v.history != nil {
					copied.History = v.history.Save(v.Window, i)
				}
				k.Views = append(k.Views, copied)
				if entries[v] == nil {
					entries[v] = make(map[int32]bool)
				}
				entries[v][i] = true
			}
		}
		if len(k.Views) > 0 {
			s.keys = append(s.keys, k)
		}
	}
	for v := range d.views() {
		if v.Now() != ring.Never {
			s.references = append(s.references, v.saveReference(entries[v]))
		}
	}
	s.dropped, s.costs = max(0, len(all)-limit), d.costs.save()
	return s
}

// savedBelow returns the times since which the windows of v have been below the exits of the
// thresholds that hold w hot. A nil w has none.
func (w *watched) savedBelow(v *view) (below []snapshot.Below) {
	if w == nil {
		return nil
	}
	for _, t := range v.thresholds {
		if m := &w.marks[t.number]; m.hot && !m.below.IsZero() {
			below = append(below, snapshot.Below{Of: t.exitTerms(), Since: m.below, Until: v.Start(v.closed + 1)})
		}
	}
	return below
}

// exitTerms returns the settings that the exit of t depends on.
func (t *threshold) exitTerms() string {
	return fmt.Sprint(t.Kind, t.Rate.N, t.Factor, t.Over, t.Top, t.Exit)
}

// resume adds the counts of a key of another process to the windows of the same shape.
func (d *Detector) resume(k *snapshot.RuleKey, hash uint64) {
	for i := range k.Views {
		saved := &k.Views[i]
		v := d.viewOf(k.Rule, saved.Pane, saved.Panes)
		if v == nil {
			continue
		}
		entry := v.Resume(hash, k.Text, &saved.Counted)
		if entry < 0 {
			d.noRoom++
			continue
		}
		v.GiveName(entry, k.Text, v.least)
		if v.history != nil {
			v.history.Resume(hash, k.Text, saved.History)
		}
		if n := len(saved.Counts); n > 0 {
			last := saved.Counts[n-1].Pane
			v.newest, v.lastToJudge = max(v.newest, last), max(v.lastToJudge, max(last, v.Now())+int64(v.Panes))
		}
		if len(saved.Below) > 0 {
			if v.saved == nil {
				v.saved = make(map[string]*snapshot.WindowCounts)
			}
			v.saved[string(k.Text)] = saved
		}
	}
}

// viewOf returns the view of a rule by the shape of its window, if it has all counts that this
// process has received, and nil otherwise.
func (d *Detector) viewOf(rule int, pane time.Duration, panes int) *view {
	if d.rules[rule] == nil {
		return nil
	}
	for _, v := range d.rules[rule].views {
		if v.Pane == pane && v.Panes == panes && v.sinceStart {
			return v
		}
	}
	return nil
}
