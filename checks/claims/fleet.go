package claims

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// countEvents passes the events in [from, to) to the collectors. The interval must lie within one
// pane.
func (r *run) countEvents(from, to int64) {
	for _, rule := range r.judge.rules {
		rule.ref.advanceTo(from)
	}
	r.events = r.stream.Next(from, to, r.events[:0])
	for _, e := range r.events {
		for _, rule := range r.judge.rules {
			rule.ref.add(e.Key, uint32(e.N))
		}
		if uncertainty := r.clocks.blurOf(int(e.Instance), from); uncertainty != (blur{}) {
			for _, rule := range r.judge.rules {
				rule.ref.recordBlur(e.Key, int64(e.N), from, uncertainty)
			}
			if uncertainty.early+uncertainty.doubt > int64(grace) {
				r.clocks.lateCounts += int64(e.N)
			}
		}
		r.sum += int64(e.N)
		r.sumOverRules += int64(e.N) * int64(len(r.Rules))
	}
	if r.Measure {
		r.measure.start()
		defer r.measure.stop()
	}
	for i, head := range r.members {
		for _, e := range r.events {
			r.member = r.stream.AppendText(append(r.member[:0], head...), e.Key)
			hash := r.hash(e.Key, i)
			if r.Lines > 0 {
				hash = rules.Hash(r.member)
			}
			r.collectors[e.Instance].Add(hash, r.member, uint64(e.N))
		}
	}
}

// flush advances the run to the cut, at which the collectors flush.
func (r *run) flush(from, cut int64) {
	if from%tenthSecond == 0 {
		r.steerCollectors()
	}
	r.net.passTo(cut)
	if r.live != nil {
		r.live.advanceTo(cut)
		if cut%tenthSecond != 0 {
			return
		}
	}
	for i, c := range r.collectors {
		if r.live == nil {
			c.Flush(context.Background(), time.Unix(0, from))
		}
		r.checkLineBudget(i, c.Stats())
	}
	r.mostSteered = r.steered
}

// steerCollectors passes to the collectors the state of the fleet, as in production.
func (r *run) steerCollectors() {
	if r.Lines == 0 || !r.judge.changed {
		return
	}
	r.judge.changed = false
	fleet, hot := r.judge.fleet(r.Instances)
	for _, c := range r.collectors {
		c.Steer(fleet, hot)
	}
	r.steered = len(hot) + len(fleet.Suspects)
	r.mostSteered = max(r.mostSteered, r.steered)
}

// fleet returns what the collectors know about the fleet: its size, the suspects and the hot
// keys.
func (j *judge) fleet(instances int) (f published.Fleet, hot []rules.Key) {
	f.Instances = instances
	for _, list := range j.suspects {
		for _, h := range list {
			f.Suspects = append(f.Suspects, h.Key)
		}
	}
	for _, r := range j.rules {
		for key, l := range r.states {
			if l.hot {
				hot = append(hot, rules.Key{Rule: r.id, Text: string(j.stream.AppendText(nil, key))})
			}
		}
	}
	return f, hot
}

// checkLineBudget judges the lines that a collector sent since the last call.
func (r *run) checkLineBudget(i int, s collector.Stats) {
	r.exact = r.exact && s.Held == 1 && s.Dropped.Sum() == 0
	// A hot or suspect key is sent regardless of the budget, and its held back counts take a line
	// of their own.
	lines := s.Lines - r.lines[i]
	r.lines[i] = s.Lines
	if maxLines := int64(max(r.Lines, 2*r.mostSteered)); r.Lines > 0 && lines > maxLines {
		r.judge.recordViolation(OverBudget, nil, 0, "i%d sent %d lines, the budget is %d; %d keys are hot or suspect", i, lines, r.Lines, r.mostSteered)
	}
}

// live lets collectors flush on their own, on a simulated clock.
type live struct {
	step      int64 // longest interval between events
	start     func(ctx context.Context, begin int64, collectors []*collector.Collector) (stop func())
	advanceTo func(instant int64)
}

func (r *run) urgent() time.Duration {
	if r.live == nil {
		return -1
	}
	return collector.DefaultUrgent
}
