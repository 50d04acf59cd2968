package admitted

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Totals adds up the outcomes of hot keys' requests over all instances, including those that left.
// Each report counts from the time at which the key became hot, so the next report makes up for a
// lost one. Totals is safe for concurrent use.
type Totals struct {
	mu   sync.Mutex
	keys map[rules.Key]*total
}

// total is the sum of one key.
type total struct {
	id      uint64
	since   int64               // start of the key's heat, in Unix milliseconds
	of      map[string]*outcome // last reports, by incarnation of the instance
	before  published.Outcomes  // sum of instances that left long ago, or before this process began
	listed  time.Time           // last time at which the key was published
	owner   string              // the part of the aggregator that publishes it
	span    span                // time of the reports since the last sum
	adopted bool                // whether sum is that of a predecessor, and was not compared with reports yet
	sum     published.FleetOutcomes
}

// outcome is the last report of an instance.
type outcome struct {
	published.Outcomes
	heard time.Time
}

// span is a time, or none if both are zero.
type span struct{ from, to time.Time }

// Growth is what the sum of a key has grown by. The instances counted it between From and To: since
// their previous reports of the key, which are long ago if they have more hot keys than they report.
type Growth struct {
	Key      rules.Key
	Owner    string // the part of the aggregator that publishes the key
	Outcomes published.Outcomes
	From, To time.Time
}

// forget is how long the report of an instance that has left is kept on its own. An instance that
// reaches no Redis for less time does not count twice.
const forget = time.Hour

// keepUnlisted is how long a key is kept that is not published, as after a loss in Redis.
const keepUnlisted = 30 * time.Second

// Update adds the members' reports about the published hot keys, and returns the growth of their
// sums. Some members may have left.
func (t *Totals) Update(hot []published.Hot, members []published.Member, now time.Time) (grown []Growth) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list(hot, now)
	byID := make(map[uint64]*total, len(t.keys))
	for key, k := range t.keys {
		if byID[k.id] = k; now.Sub(k.listed) > keepUnlisted {
			delete(t.keys, key)
		}
	}
	present, cut := make(map[string]bool, len(members)), false
	for i := range members {
		m := &members[i]
		present[m.Incarnation] = true
		cut = cut || m.MoreAdmitted
		for j := range m.Admitted {
			a := &m.Admitted[j]
			if k := byID[a.ID]; k != nil && a.Since.UnixMilli() == k.since {
				k.add(m, &a.Outcomes)
			}
		}
	}
	for key, k := range t.keys {
		before := k.sum.Outcomes
		k.addUp(present, cut, now)
		if more := k.sum.Minus(before); more != (published.Outcomes{}) {
			grown = append(grown, Growth{key, k.owner, more, k.span.from, k.span.to})
		}
		k.span = span{}
	}
	return grown
}

// Inherit continues the sums that are published with hot keys. It changes no sum that Totals has.
func (t *Totals) Inherit(hot []published.Hot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list(hot, time.Now())
}

// list records that these keys are published.
func (t *Totals) list(hot []published.Hot, now time.Time) {
	if t.keys == nil {
		t.keys = make(map[rules.Key]*total)
	}
	for i := range hot {
		h := &hot[i]
		k := t.keys[h.Key]
		if k == nil || k.since != h.Since.UnixMilli() {
			k = newTotal(h)
			t.keys[h.Key] = k
		}
		k.listed, k.owner = now, h.Owner
	}
}

// newTotal returns the total of a key, which continues that of a predecessor.
func newTotal(h *published.Hot) *total {
	k := &total{id: limiter.KeyID([]byte(h.Key.String())), since: h.Since.UnixMilli(), of: make(map[string]*outcome)}
	if h.Outcomes != nil {
		k.adopted, k.sum, k.before = true, *h.Outcomes, h.Outcomes.Gone
	}
	return k
}

// add adds the report of an instance. Reports may overtake each other, so its counts never go back.
func (k *total) add(m *published.Member, o *published.Outcomes) {
	x := k.of[m.Incarnation]
	if x == nil {
		x = &outcome{heard: time.UnixMilli(k.since)}
		k.of[m.Incarnation] = x
	}
	if more := o.Minus(x.Outcomes); more != (published.Outcomes{}) {
		if k.span.from.IsZero() || x.heard.Before(k.span.from) {
			k.span.from = x.heard
		}
		if m.Heard.After(k.span.to) {
			k.span.to = m.Heard
		}
		x.Outcomes = x.Plus(more)
	}
	x.heard = m.Heard
}

// addUp sets the sum. It never goes back. An adopted sum that is higher than the reports has those of
// instances that have left since it was published, unless instances report only some of their keys.
func (k *total) addUp(present map[string]bool, cut bool, now time.Time) {
	sum, gone := k.before, k.before
	for name, x := range k.of {
		sum = sum.Plus(x.Outcomes)
		switch {
		case present[name]:
		case now.Sub(x.heard) > forget:
			k.before = k.before.Plus(x.Outcomes)
			delete(k.of, name)
			fallthrough
		default:
			gone = gone.Plus(x.Outcomes)
		}
	}
	missing := k.sum.Outcomes.Minus(sum)
	if k.adopted && !cut {
		k.before, gone = k.before.Plus(missing), gone.Plus(missing)
	}
	k.adopted = k.adopted && cut
	k.sum = published.FleetOutcomes{Outcomes: sum.Plus(missing), Gone: gone}
}

// Of returns the outcomes of a key since it became hot, or nil if they are not known.
func (t *Totals) Of(key rules.Key, since time.Time) *published.FleetOutcomes {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.keys[key]
	if k == nil || k.since != since.UnixMilli() || k.sum == (published.FleetOutcomes{}) {
		return nil
	}
	sum := k.sum
	return &sum
}
