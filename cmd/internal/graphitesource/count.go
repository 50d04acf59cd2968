package graphitesource

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// extent is the range of points that an answer covers.
type extent struct {
	first  int64 // oldest point of the answer
	newest int64 // newest point whose counts are complete
	gaps   int64 // number of unknown points after the newest known before
	lost   int64 // newest unknown point; 0 if there are none
}

// skew is how many seconds a point may be ahead of the clock of the server that sent it, since
// several servers may answer. If points read earlier are further ahead, the clock was set back.
const skew = 60

// count processes an answer as a whole, or rejects it as malformed. If time has stood still for
// too long, it returns an error even for an answer that it has processed.
func (j *job) count(a *answeredRequest) error {
	now := a.received
	if j.begun && a.served.Unix()+skew < j.known*j.step {
		if j.mayLogClock(now) {
			j.cfg.Log.Warn("the clock of Graphite's machine was set back: starting again", "by", time.Unix(j.known*j.step, 0).Sub(a.served))
		}
		j.restart()
		return nil
	}
	x, ok := j.extent(a)
	switch {
	case !ok:
		return j.still(now, "there is no point of %q: does StatsD run, and write to this Graphite? If its series has another name, give that as heartbeat", j.cfg.Heartbeat)
	case x.newest*j.step > a.served.Unix()+skew:
		return failed(malformed, fmt.Errorf("the newest point is of %v, and it is %v there now", time.Unix(x.newest*j.step, 0).UTC(), a.served.UTC()))
	}
	moved := !j.begun || x.newest > j.known
	x.newest = max(x.newest, j.known)
	t := j.tally(a, x.newest)
	j.feedCounts(x, t.counts)
	j.add(x, t)
	j.begun, j.known = true, x.newest
	j.ledger.prune(j.known)
	j.nameHot()
	if !moved {
		return j.still(now, "there is no newer point of %q than that of %v: do StatsD and carbon run", j.cfg.Heartbeat, time.Unix(j.known*j.step, 0).UTC().Format(time.TimeOnly))
	}
	j.shown.moved, j.shown.complete = now, time.Unix(j.known*j.step, 0)
	j.outage.Succeeded(j.cfg.Log, now, "Graphite gives counts again", "missed_seconds", x.gaps*j.step)
	return nil
}

// still returns a failure if time has stood still for too long.
func (j *job) still(now time.Time, format string, args ...any) error {
	if now.Sub(j.shown.moved) <= j.patience {
		return nil
	}
	return failed(silent, fmt.Errorf(format, args...))
}

// extent returns the extent of an answer, and false if the answer has no point of the heartbeat.
func (j *job) extent(a *answeredRequest) (extent, bool) {
	var x extent
	var beats []float64 // heartbeats from first to newest; nil if each point is known
	if j.cfg.Heartbeat == NoHeartbeat {
		if x.first = a.from; x.first == 0 {
			x.first = a.served.Unix()/j.step - a.points + 2
		}
		x.newest = (a.served.Unix()-1)/j.step - 1 // a second for counts that are on their way
	} else {
		s := j.beats(a.seriesReply)
		if s == nil {
			return x, false
		}
		x.first = s.first
		var ok bool
		if x.newest, ok = s.newest(); !ok {
			return x, false
		}
		beats = s.value[:x.newest-x.first+1]
	}
	if !j.begun { // begin with the first known point
		silent := slices.IndexFunc(beats, func(v float64) bool { return !math.IsNaN(v) })
		silent = max(0, silent)
		beats = beats[min(silent, len(beats)):]
		x.first += int64(silent)
		x.lost = x.first - 1
	} else {
		x.addGap(j.known+1, min(x.first, x.newest+1))
	}
	for i, v := range beats {
		if point := x.first + int64(i); math.IsNaN(v) && point > j.known {
			x.addGap(point, point+1)
		}
	}
	return x, true
}

// beats returns the heartbeat series of an answer, or nil.
func (j *job) beats(r *seriesReply) *series {
	i := slices.IndexFunc(r.series, func(s series) bool { return s.name == j.cfg.Heartbeat })
	if i < 0 {
		return nil
	}
	return &r.series[i]
}

// addGap records that the points in [from, to) are unknown.
func (x *extent) addGap(from, to int64) {
	if to > from {
		x.gaps += to - from
		x.lost = to - 1
	}
}

// tally returns the new counts of an answer, of points up to newest.
func (j *job) tally(a *answeredRequest, newest int64) *answerCounts {
	t := &answerCounts{counts: j.counts[:0]}
	j.ledger.polls++
	for i := range a.series {
		s := &a.series[i]
		if s.name == j.cfg.Heartbeat {
			continue
		}
		e := j.ledger.findEntry(s.name, t)
		if e == nil {
			continue
		}
		w, from := &j.watches[e.watch], int64(0)
		if j.begun { // older points are in no window any more
			from = max(j.known-j.ledger.keep, j.known-j.reread-w.span) + 1
		}
		j.ledger.recordPoints(e, s, from, newest, t)
		if s.exceeds(float64(w.above)/j.ledger.scale, newest-j.ledger.keep+1) {
			e.sent = j.ledger.polls
		}
	}
	slices.SortStableFunc(t.counts, func(a, b newCount) int { return cmp.Compare(a.point, b.point) })
	return t
}

// exceeds reports whether a point numbered from or later is above value. The next request begins
// at from, so then its answer has the series.
func (s *series) exceeds(value float64, from int64) bool {
	i := min(max(0, from-s.first), int64(len(s.value)))
	return slices.ContainsFunc(s.value[i:], func(v float64) bool { return v > value })
}

// feedCounts counts point by point, the oldest first, and advances the time to the newest. The time
// is the start of the newest step, where its counts are placed: a window that ends there holds
// as many points as it is long. All earlier counts are complete by then. Newer points are left
// for the next answer, since one may have been written while Graphite read, and new series
// appear a little later.
func (j *job) feedCounts(x extent, counts []newCount) {
	if x.lost > 0 {
		j.detector.RecordLoss(j.when(x.lost))
	}
	now := x.first
	if j.begun {
		now = j.known
	}
	j.advance(now)
	if !j.begun || len(j.adopted) > 0 {
		j.hot.holdChanges() // keys may have been hot at that time that have cooled since
		defer j.hot.release()
	}
	j.adopt(now, x.newest)
	for i := range counts {
		c := &counts[i]
		if c.point > now {
			now = c.point
			j.advance(now)
		}
		j.detector.Count(decode.Count{
			Rule: j.watches[c.entry.watch].number, Hash: c.entry.hash, Text: c.entry.text, N: c.n, When: j.when(c.point),
		})
	}
	j.advance(max(now, x.newest))
	clear(counts) // release the entries
	j.counts = counts[:0]
}

// adopt passes the keys that stay hot to the detector, which is at point, before the points
// up to newest are counted. A key dated later than newest was found by a clock that was ahead.
// Its date is moved to newest, since it could not cool before it.
func (j *job) adopt(point, newest int64) {
	if len(j.adopted) == 0 {
		return
	}
	for i := range j.adopted {
		if h := &j.adopted[i]; h.Since.After(j.when(newest)) {
			h.Since = j.when(newest)
		}
	}
	j.hot.Publish(published.Change{Cool: j.detector.Adopt(j.adopted, j.when(point))})
	j.adopted = nil
}

func (j *job) advance(point int64) { j.detector.AdvanceTo(j.when(point), j.when(point)) }

// add updates the counters.
func (j *job) add(x extent, t *answerCounts) {
	s := &j.shown.stats
	for _, a := range []struct {
		sum *int64
		n   int64
	}{
		{&s.Points, t.points}, {&s.Counted, t.counted}, {&s.Revised, t.revised}, {&s.Shrunk, t.shrunk},
		{&s.BadValue, t.badValue}, {&s.BadKey, t.badKey}, {&s.Foreign, t.foreign}, {&s.Uncanonical, t.uncanonical}, {&s.MissedSeconds, x.gaps * j.step},
	} {
		*a.sum = increased(*a.sum, a.n)
	}
}

// nameHot lists the hot keys whose series did not pass the filter. They are requested by name,
// so that their counts are right until they cool.
func (j *job) nameHot() {
	j.named = make([][]string, len(j.watches))
	n, others := 0, j.otherNames()
	for _, key := range j.hot.sorted() {
		number := j.byRule[key.Rule]
		w := &j.watches[number]
		if w.above == 0 {
			continue
		}
		encoded := string(j.cfg.Encoding.Append(nil, []byte(key.Text)))
		for _, name := range append(others[key], encoded) {
			if !isLiteral([]byte(name)) {
				continue
			}
			if e := j.ledger.entries[j.cfg.series(w.prefix+name)]; e != nil && e.sent == j.ledger.polls {
				continue
			}
			j.named[number] = append(j.named[number], name)
			if n++; n == maxNamed {
				return
			}
		}
	}
}

// otherNames returns the names of the series of hot keys that other programs wrote in another
// form.
func (j *job) otherNames() map[rules.Key][]string {
	names := make(map[rules.Key][]string)
	for _, e := range j.ledger.entries {
		if e.other == "" {
			continue
		}
		key := rules.Key{Rule: j.cfg.Rules.Rules[j.watches[e.watch].number].ID, Text: string(e.text)}
		if _, hot := j.hot.keys[key]; hot {
			names[key] = append(names[key], e.other)
		}
	}
	for _, all := range names {
		slices.Sort(all)
	}
	return names
}
