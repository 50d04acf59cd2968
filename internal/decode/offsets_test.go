package decode

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// Whatever times a sender states, no count is placed in the future, since that would move all
// windows.
func TestNothingIsOfATimeToCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDecoder(decoderRules(), wire.Plain)
		now := noon
		stamp := func(name string) int64 {
			off := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Hour, 1 << 61}).Draw(t, name)
			return max(0, now.UnixNano()-int64(off)*rapid.SampledFrom([]int64{1, -1}).Draw(t, name+" sign"))
		}
		for seq := range uint64(rapid.IntRange(1, 30).Draw(t, "packets")) {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "later")) * time.Millisecond)
			m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Seq: seq + 1, Start: stamp("start"), Sent: stamp("sent"), Held: 1, Unsent: 3, Sums: wire.Sums{Stated: true}}
			var got placed
			d.Record(&m, []byte(oneCount), now, true, &got)
			for _, when := range append(got.hidden, got.when) {
				if when.After(now) {
					t.Fatalf("packet %d that starts at %v and was sent at %v has counts of %v after it came", m.Seq, time.Unix(0, m.Start).Sub(now), time.Unix(0, m.Sent).Sub(now), when.Sub(now))
				}
			}
		}
	})
}

// Lost counts are missing at the time when they were counted, even if the clock was set in
// between.
func TestGapsAreByTheRightClock(t *testing.T) {
	const second = time.Second
	for name, clock := range map[string]func(time.Duration) time.Duration{
		"right": always(0), "slow": always(-4 * second), "fast": always(4 * second), "slow by an hour": always(-time.Hour),
		"set right from slow": from(20*second, -4*second, 0), "set right from fast": from(20*second, 4*second, 0),
		"set back": from(20*second, 0, -4*second), "set forward": from(20*second, 0, 4*second), "set forward by an hour": from(20*second, 0, time.Hour),
	} {
		for i := range 54 {
			lost := 1 + i%6
			begins := 20*second + time.Duration(i/6-6)*base.FlushInterval
			last := begins + time.Duration(lost)*base.FlushInterval
			d := NewDecoder(decoderRules(), wire.Plain)
			var got placed
			for _, p := range arrivals(25*second, &instance{Name: "api-1", Clock: clock, Delay: always(time.Millisecond)}) {
				if p.Start >= begins && p.Start < last {
					continue
				}
				d.Record(&p.Meta, []byte(oneCount), noon.Add(p.At), true, &got)
			}
			if len(got.gaps) != 1 || got.gaps[0].Loose != int64(lost) {
				t.Fatalf("%s: of %d flushes lost: %+v", name, lost, got.gaps)
			}
			from, to := got.gaps[0].From.Sub(noon), got.gaps[0].To.Sub(noon)
			if from > begins+5*time.Millisecond || to < begins+time.Duration(lost-1)*base.FlushInterval || from < begins-2*base.FlushInterval || to > last+2*base.FlushInterval {
				t.Errorf("%s: %d flushes from %v on are missing from %v to %v", name, lost, begins, from, to)
			}
		}
	}
}

// When our own clock is set, within its limit, no instance's counts are lost by that, and each
// instance's reported offset is correct.
func TestOwnClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{4 * time.Second, -4 * time.Second, 50 * time.Second, -50 * time.Second} {
		d := NewDecoder(decoderRules(), wire.Plain)
		set := time.Duration(0)
		d.senders.steady = func(now time.Time) (time.Time, time.Duration) { return now.Add(-set), set }
		var got placed
		all := []*instance{{Name: "right", Clock: always(0)}, {Name: "fast", Clock: always(10 * time.Second)}, {Name: "slow", Clock: always(-10 * time.Second)}}
		for _, i := range all {
			i.Delay = always(time.Millisecond)
		}
		var now time.Time
		for _, p := range arrivals(60*time.Second, all...) {
			if set = 0; p.At > 20*time.Second && p.At < 40*time.Second {
				set = by
			}
			now = noon.Add(p.At + set)
			d.Record(&p.Meta, []byte(oneCount), now, true, &got)
			if wrong := got.when.Sub(noon.Add(p.Start + set)); p.At > 2*time.Second && wrong.Abs() > clockSlack {
				t.Fatalf("set by %v: at %v counts of %s are placed %v wrong", by, p.At, p.From.Name, wrong)
			}
			if off := d.Clocks(now); p.At > 30*time.Second && p.At < 39*time.Second && (len(off) != 3 || (off[1].Behind-by).Abs() > clockSlack) {
				t.Fatalf("set by %v: told %v", by, off)
			}
		}
		if off := d.Clocks(now); len(off) != 2 || off[0].Name != "fast" || off[1].Name != "slow" {
			t.Errorf("set by %v and back: told %v", by, off)
		}
	}
}

// The steady clock runs like ours, and works for instants with and without a monotonic reading.
func TestSteadyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steady := steadyTime()
		time.Sleep(time.Minute)
		for _, now := range []time.Time{time.Now(), time.Now().Round(0), noon} {
			if at, set := steady(now); !at.Equal(now) || set != 0 {
				t.Errorf("%v is %v on the steady clock, which was set by %v", now, at, set)
			}
		}
	})
}

// It is unknown whether a group contains counts that were held back since before their sender was
// first heard, whatever the sender's clock.
func TestHeldBackBeforeAClockWasKnown(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		d := NewDecoder(decoderRules(), wire.Plain)
		i := &instance{Name: "api-1", Clock: always(ahead), Delay: always(time.Millisecond)}
		packets := arrivals(3*time.Second, i)[3:]
		for _, p := range packets {
			d.Record(&p.Meta, nil, noon.Add(p.At), true, nobody{})
		}
		m := packets[len(packets)-1].Meta
		flush := m.Start
		for _, test := range []struct {
			start time.Duration
			want  InGroup
		}{{2800 * time.Millisecond, CertainlyInGroup}, {500 * time.Millisecond, CertainlyInGroup}, {300 * time.Millisecond, MaybeInGroup}, {0, MaybeInGroup}} {
			m.Start = i.Stamp(test.start)
			m.Sums.Age = max(1, flush-m.Start)
			if got := d.senders.inGroup(d.senders.byName["api-1"], &m); got != test.want {
				t.Errorf("%v ahead, held back since %v: %v, want %v", ahead, test.start, got, test.want)
			}
		}
	}
}
