package decode

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// placed is a handler that records the time of the last count, and the reports of hidden counts.
type placed struct {
	nobody
	when   time.Time
	hidden []time.Time
	gaps   []Gap
}

func (p *placed) Count(c Count)                           { p.when = c.When }
func (p *placed) AddHiddenCounts(when time.Time, _ int64) { p.hidden = append(p.hidden, when) }
func (p *placed) RecordGap(g Gap)                         { p.gaps = append(p.gaps, g) }

// from returns a function with one value before an instant, and another from then on.
func from(at, before, after time.Duration) func(time.Duration) time.Duration {
	return func(t time.Duration) time.Duration {
		if t < at {
			return before
		}
		return after
	}
}

// backlog returns the delays of a link that is cut for some time and queues its packets. Then they
// arrive at a multiple of the speed at which they were sent.
func backlog(cut, lasts time.Duration, speed float64) func(time.Duration) time.Duration {
	return func(at time.Duration) time.Duration {
		if at < cut {
			return time.Millisecond
		}
		return max(time.Millisecond, lasts-time.Duration(float64(at-cut)*(1-1/speed)))
	}
}

const oneCount = "shop.terms.hot_param.k:1|c"

// Counts of each instance are placed when they were counted by our clock, however far the
// instance's own clock is off. Counts of instances with correct clocks keep their own times.
func TestClocks(t *testing.T) {
	const second, forever = time.Second, time.Hour
	for name, test := range map[string]struct {
		instance
		// From sure on, counts are placed where they were counted, up to the slack. Between unsure
		// and sure they may be placed elsewhere.
		sure, unsure, again time.Duration
		exact               bool          // placed to the nanosecond where the sender states
		drift               time.Duration // drift of the clock in half a minute
		behind              time.Duration // reported offset at the end
	}{
		"right":                          {instance: instance{Clock: always(0)}, exact: true},
		"right, far away":                {instance: instance{Clock: always(0), Delay: always(200 * time.Millisecond)}, exact: true},
		"a little slow":                  {instance: instance{Clock: always(-200 * time.Millisecond)}, exact: true},
		"a little fast":                  {instance: instance{Clock: always(50 * time.Millisecond)}, exact: true},
		"slow by 4 s":                    {instance: instance{Clock: always(-4 * second)}, sure: 1300 * time.Millisecond, behind: 4 * second},
		"slow by 700 ms":                 {instance: instance{Clock: always(-700 * time.Millisecond)}, sure: 1300 * time.Millisecond, behind: 700 * time.Millisecond},
		"slow by an hour":                {instance: instance{Clock: always(-forever)}, sure: 1300 * time.Millisecond, behind: forever},
		"fast by 4 s":                    {instance: instance{Clock: always(4 * second)}, behind: -4 * second},
		"fast by an hour":                {instance: instance{Clock: always(forever)}, behind: -forever},
		"runs slow by 1%":                {instance: instance{Clock: func(at time.Duration) time.Duration { return -at / 100 }}, drift: 300 * time.Millisecond, behind: 900 * time.Millisecond},
		"runs fast by 1%":                {instance: instance{Clock: func(at time.Duration) time.Duration { return at / 100 }}, behind: -900 * time.Millisecond},
		"slow, and set right":            {instance: instance{Clock: from(20*second, -4*second, 0)}, sure: 1300 * time.Millisecond},
		"slow by an hour, and set right": {instance: instance{Clock: from(20*second, -forever, 0)}, sure: 1300 * time.Millisecond},
		"fast, and set right":            {instance: instance{Clock: from(20*second, 4*second, 0)}},
		"right, and set back":            {instance: instance{Clock: from(20*second, 0, -4*second)}, behind: 4 * second},
		"right, and set forward":         {instance: instance{Clock: from(20*second, 0, forever)}, behind: -forever},
		"silent, and slow when it is back": {instance: instance{Clock: from(60*second, 0, -4*second), Silent: func(at time.Duration) bool { return at > 20*second && at < 70*second }},
			unsure: 70 * second, again: 71300 * time.Millisecond, behind: 4 * second},
		"right, with a backlog":             {instance: instance{Clock: always(0), Delay: backlog(20*second, 10*second, 20)}, exact: true},
		"right, with a long backlog":        {instance: instance{Clock: always(0), Delay: backlog(20*second, 28*second, 3)}, exact: true},
		"new, with a backlog":               {instance: instance{Clock: always(0), Delay: backlog(0, 10*second, 20)}, exact: true},
		"new, with a backlog that is slow":  {instance: instance{Clock: always(0), Delay: backlog(0, 10*second, 1.5)}, exact: true},
		"slow, with a backlog":              {instance: instance{Clock: always(-4 * second), Delay: backlog(20*second, 10*second, 20)}, sure: 1300 * time.Millisecond, behind: 4 * second},
		"fast, with a backlog":              {instance: instance{Clock: always(4 * second), Delay: backlog(20*second, 10*second, 20)}, behind: -4 * second},
		"set back within a backlog":         {instance: instance{Clock: from(25*second, 0, -4*second), Delay: backlog(20*second, 10*second, 20)}, unsure: 25 * second, again: 31 * second, behind: 4 * second},
		"on its way for long for a minute":  {instance: instance{Clock: always(0), Delay: from(20*second, 0, 3*second)}, unsure: 45 * second, again: forever, behind: 3 * second},
		"slow, of a version without stamps": {instance: instance{Clock: always(-4 * second), Plain: true}, sure: forever},
	} {
		t.Run(name, func(t *testing.T) {
			i := test.instance
			i.Name = "api-1"
			base := i.Delay
			if base == nil {
				base = always(0)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			i.Delay = func(at time.Duration) time.Duration {
				return base(at) + time.Duration(rng.IntN(20))*time.Millisecond
			}
			d := NewDecoder(decoderRules(), wire.Plain)
			var got placed
			last := time.Time{}
			for _, p := range arrivals(90*second, &i) {
				now := noon.Add(p.At)
				d.Record(&p.Meta, []byte(oneCount), now, true, &got)
				last = now
				wrong, bound := got.when.Sub(noon.Add(p.Start)), clockSlack+20*time.Millisecond+test.drift
				if test.exact {
					bound = 0
					wrong -= min(i.Clock(p.Start), p.At-p.Start)
				}
				sure := p.At >= test.sure && (p.At < test.unsure || p.At >= test.again)
				if test.unsure == 0 {
					sure = p.At >= test.sure
				}
				if sure && wrong.Abs() > bound {
					t.Fatalf("counts of %v that come at %v are placed %v wrong", p.Start, p.At, wrong)
				}
			}
			off := d.Clocks(last)
			if test.behind == 0 {
				if len(off) > 0 {
					t.Errorf("told %v", off)
				}
				return
			}
			if len(off) != 1 || !off[0].Corrected || (off[0].Behind-test.behind).Abs() > clockSlack+20*time.Millisecond+test.drift {
				t.Fatalf("told %v, want it %v behind", off, test.behind)
			}
			if s := d.Stats(); s.Off != (OffClocks{1, off[0]}) || s.Late.N > 0 && test.sure < forever {
				t.Errorf("stats %+v, %+v", s.Off, s.Late)
			}
		})
	}
}

// While a new sender may have either a slow clock or delayed packets, no claim is made that would
// be false in one of the cases. Its counts may belong where they are placed, or later by as much
// as they are late.
func TestDoubtfulCountsAreHidden(t *testing.T) {
	slow := &instance{Name: "api-1", Clock: always(-4 * time.Second), Delay: always(time.Millisecond)}
	d := NewDecoder(decoderRules(), wire.Plain)
	doubtful := 0
	for _, p := range arrivals(5*time.Second, slow) {
		var got placed
		d.Record(&p.Meta, []byte(oneCount), noon.Add(p.At), true, &got)
		if right := noon.Add(p.Start + time.Millisecond); got.when.Equal(right) {
			if len(got.hidden) > 0 {
				t.Fatalf("at %v hidden %v", p.At, got.hidden)
			}
			continue
		} else if len(got.hidden) != 1 || !got.hidden[0].Equal(right) {
			t.Fatalf("at %v placed at %v, hidden %v, want it hidden at %v", p.At, got.when, got.hidden, right)
		}
		doubtful++
	}
	if doubtful == 0 || doubtful > 11 {
		t.Errorf("%d flushes were in doubt", doubtful)
	}
}

// A process that restarts on the same machine keeps the clock's offset. A process with the same
// name on another machine soon gets that machine's offset.
func TestClocksOverRestarts(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Plain)
	var got placed
	run := func(life uint64, begins, lasts, clock time.Duration) (wrong []time.Duration) {
		i := &instance{Name: "api-1", Clock: always(clock), Delay: always(time.Millisecond)}
		for _, p := range arrivals(lasts, i) {
			p.Meta.Incarnation = life
			p.Meta.Start += int64(begins)
			p.Meta.Sent += int64(begins)
			d.Record(&p.Meta, []byte(oneCount), noon.Add(begins+p.At), true, &got)
			wrong = append(wrong, got.when.Sub(noon.Add(begins+p.Start)).Abs())
		}
		return wrong
	}
	run(1, 0, 10*time.Second, -4*time.Second)
	if wrong := run(2, 12*time.Second, 5*time.Second, -4*time.Second); slices.Max(wrong) > clockSlack {
		t.Errorf("after a restart counts are placed %v wrong", slices.Max(wrong))
	}
	if wrong := run(3, 20*time.Second, 5*time.Second, -7*time.Second); slices.Max(wrong[11:]) > clockSlack {
		t.Errorf("after a start on another machine counts are placed %v wrong", slices.Max(wrong[11:]))
	}
}

// The state of a clock takes no more room however many packets come, and costs no allocation.
func TestClocksDoNotAllocate(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Plain)
	now, seq := noon, uint64(0)
	m := meta("api-1", 1, 1)
	packet := func() {
		now, seq = now.Add(base.FlushInterval), seq+1
		m.Seq, m.Start, m.Sent = seq, now.Add(-time.Hour).UnixNano(), now.Add(-time.Hour).UnixNano()
		d.Record(m, nil, now, true, nobody{})
	}
	for range 20 {
		packet()
	}
	if n := testing.AllocsPerRun(1000, packet); n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if d.Stats().Off.N != 1 {
		t.Error("the clock is not off")
	}
}

// Forgotten senders are no longer reported.
func TestClocksAreForgotten(t *testing.T) {
	d := NewDecoder(&rules.Rules{}, wire.Plain)
	var now time.Time
	for _, p := range arrivals(3*time.Second, &instance{Name: "api-1", Clock: always(-time.Hour), Delay: always(0)}) {
		now = noon.Add(p.At)
		d.Record(&p.Meta, nil, now, true, nobody{})
	}
	if s := d.Stats(); s.Off.N != 1 || len(d.Clocks(now)) != 1 || len(d.Clocks(now.Add(liveFor+time.Second))) != 0 {
		t.Errorf("%+v", s.Off)
	}
	d.Record(meta("api-2", 1, 1), nil, now.Add(3*senderLife), true, nobody{})
	if s := d.Stats(); s.Off.N != 0 {
		t.Errorf("%+v", s.Off)
	}
}
