package claims

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// count gives the collectors what comes in [from, to), which is of one pane.
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

// flush lets time pass until the cut, where collectors flush.
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

// steer passes to the collectors what production passes to them.
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

// fleet is what the collectors know of the fleet.
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

// budget judges what a collector sent since the last time.
func (r *run) budget(i int, s collector.Stats) {
	r.exact = r.exact && s.Held == 1 && s.Dropped.Sum() == 0
	// A key that is hot or suspect is sent all the same; what was held back of it
	// has a line of its own.
	lines := s.Lines - r.lines[i]
	r.lines[i] = s.Lines
	if most := int64(max(r.Lines, 2*r.mostSteered)); r.Lines > 0 && lines > most {
		r.judge.wrong(OverBudget, nil, 0, "i%d sent %d lines, the budget is %d; %d keys are hot or suspect", i, lines, r.Lines, r.mostSteered)
	}
}

// live has collectors flush by themselves, on a clock that is not the real one.
type live struct {
	step  int64 // how far apart events are at most
	start func(ctx context.Context, at int64, all []*collector.Collector) (stop func())
	until func(at int64)
}

func (r *run) urgent() time.Duration {
	if r.live == nil {
		return -1
	}
	return collector.DefaultUrgent
}
