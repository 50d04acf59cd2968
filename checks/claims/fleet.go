package claims

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// count passes the events in [from, to) to the collectors. The interval must lie within one pane.
func (r *run) count(from, to int64) {
	for _, rule := range r.judge.rules {
		rule.ref.turn(from)
	}
	r.events = r.stream.Next(from, to, r.events[:0])
	for _, e := range r.events {
		for _, rule := range r.judge.rules {
			rule.ref.add(e.Key, uint32(e.N))
		}
		if by := r.clocks.blur(int(e.Instance), from); by != (blur{}) {
			for _, rule := range r.judge.rules {
				rule.ref.blur(e.Key, int64(e.N), from, by)
			}
			if by.early+by.doubt > int64(grace) {
				r.clocks.late += int64(e.N)
			}
		}
		r.sum += int64(e.N)
		r.mass += int64(e.N) * int64(len(r.Rules))
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
func (r *run) flush(from, at int64) {
	if from%tenth == 0 {
		r.steer()
	}
	r.net.passTo(at)
	if r.live != nil {
		r.live.until(at)
		if at%tenth != 0 {
			return
		}
	}
	for i, c := range r.collectors {
		if r.live == nil {
			c.Flush(context.Background(), time.Unix(0, from))
		}
		r.budget(i, c.Stats())
	}
	r.mostSteered = r.steered
}

// steer passes to the collectors the state of the fleet, as in production.
func (r *run) steer() {
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
func (j *judge) fleet(instances int) (f rules.Fleet, hot []rules.Key) {
	f.Instances = instances
	for _, list := range j.suspects {
		for _, h := range list {
			f.Suspects = append(f.Suspects, h.Key)
		}
	}
	for _, r := range j.rules {
		for key, l := range r.lives {
			if l.hot {
				hot = append(hot, rules.Key{Rule: r.id, Text: string(j.stream.AppendText(nil, key))})
			}
		}
	}
	return f, hot
}

// budget judges the lines that a collector sent since the last call.
func (r *run) budget(i int, s collector.Stats) {
	r.exact = r.exact && s.Held == 1 && s.Dropped.Sum() == 0
	// A hot or suspect key is sent regardless of the budget, and its held back counts take a line
	// of their own.
	lines := s.Lines - r.lines[i]
	r.lines[i] = s.Lines
	if most := int64(max(r.Lines, 2*r.mostSteered)); r.Lines > 0 && lines > most {
		r.judge.wrong(OverBudget, nil, 0, "i%d sent %d lines, the budget is %d; %d keys are hot or suspect", i, lines, r.Lines, r.mostSteered)
	}
}

// live lets collectors flush on their own, on a simulated clock.
type live struct {
	step  int64 // longest interval between events
	start func(ctx context.Context, at int64, all []*collector.Collector) (stop func())
	until func(at int64)
}

func (r *run) urgent() time.Duration {
	if r.live == nil {
		return -1
	}
	return collector.DefaultUrgent
}
