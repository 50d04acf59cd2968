package aggregator

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// SummaryPublisher is a [Publisher] that also receives a summary of each part once a second.
type SummaryPublisher interface {
	Summary(part int, s published.Summary)
}

// near finds the keys that are nearest to being hot, for people in quiet hours. A key that is not
// near a threshold has no text in the windows, so a sample of the counts is compared with the
// nearest keys so far. They are kept from one second to the next.
type near struct {
	left    int // counts that are still to be compared in this second
	keys    []nearKey
	told    time.Time
	counted map[*view]int64 // sums of counts at that time
}

// nearKey is a key and its count in a window, divided by the least count at which a key of the view
// is hot.
type nearKey struct {
	*view
	hash uint64
	text string
	most int64 // highest count in this second
}

const (
	// nearSample is the number of counts that are compared in a second.
	nearSample = 2000
	// nearKept is the number of keys that are kept.
	nearKept = 2 * published.MaxNear
)

func (k *nearKey) share() float64 { return float64(k.most) / float64(k.least) }

// compare compares the key of a count with the nearest ones. i is its entry.
func (n *near) compare(v *view, c *decode.Count, i int32) {
	n.left--
	k := nearKey{view: v, hash: c.Hash, most: v.Sum(i, v.Now())}
	least := 0
	for j := range n.keys {
		old := &n.keys[j]
		if old.view == v && old.hash == c.Hash {
			old.most = max(old.most, k.most)
			return
		}
		if old.share() < n.keys[least].share() {
			least = j
		}
	}
	switch {
	case len(n.keys) < nearKept:
		k.text = string(c.Text)
		n.keys = append(n.keys, k)
	case k.share() > n.keys[least].share():
		k.text = string(c.Text)
		n.keys[least] = k
	}
}

// tellSummary publishes the summary if it is due.
func (d *Detector) tellSummary(now time.Time) {
	n := &d.near
	since := now.Sub(n.told)
	to, ok := d.cfg.Publisher.(SummaryPublisher)
	if !ok || 0 <= since && since < time.Second {
		return
	}
	s := published.Summary{Near: n.describe(d)}
	counted := make(map[*view]int64, len(d.watches))
	for _, r := range d.watches {
		v := r.views[len(r.views)-1]
		counted[v] = v.Counted()
		t := published.Traffic{Rule: r.rule.ID, Route: r.rule.Match.Route.String(), Unit: r.rule.Count}
		if before, known := n.counted[v]; known && since > 0 {
			t.Rate = float64(max(0, counted[v]-before)) / since.Seconds()
		}
		for _, v := range r.views {
			t.Keys = max(t.Keys, int64(v.Keys()))
		}
		s.Traffic = append(s.Traffic, t)
	}
	n.left, n.told, n.counted = nearSample, now, counted
	to.Summary(d.suspects.part, s)
}

// describe returns the keys that are nearest to a threshold, and forgets those that are hot or no
// longer counted.
func (n *near) describe(d *Detector) (all []published.Hot) {
	nearest := make(map[rules.Key]published.Hot)
	n.keys = slices.DeleteFunc(n.keys, func(k nearKey) bool {
		v, text := k.view, []byte(k.text)
		if r := v.watch; r.number >= len(d.rules) || d.rules[r.number] != r || !slices.Contains(r.views, v) {
			return true
		}
		i := v.Find(k.hash, text)
		if i < 0 {
			return true
		}
		w := v.watched(i)
		if w != nil && w.hotMarks > 0 {
			return true
		}
		low := max(k.most, v.Sum(i, v.Now()))
		x := v.watch.exceptionOf(w, text)
		for _, t := range v.thresholds {
			enter := t.needs(x, i, text, v.newest).enter
			if enter <= 0 || low >= enter { // it is not known, or the key is about to be hot
				continue
			}
			h := published.Hot{Key: rules.Key{Rule: v.watch.rule.ID, Text: k.text}, Low: low, High: low, Cause: t.cause(x)}
			h.Rate, h.Ratio = float64(low)/t.Rate.Per.Seconds(), float64(low)/float64(enter)
			if h.Ratio > nearest[h.Key].Ratio {
				nearest[h.Key] = h
			}
		}
		return low == 0
	})
	for i := range n.keys {
		n.keys[i].most = n.keys[i].Sum(n.keys[i].Find(n.keys[i].hash, []byte(n.keys[i].text)), n.keys[i].Now())
	}
	for _, h := range nearest {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b published.Hot) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), a.Key.Compare(b.Key))
	})
	return all[:min(len(all), published.MaxNear)]
}
