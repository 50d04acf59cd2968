package aggregator

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

func overDays(least int64, per time.Duration, factor int64) rules.Rule {
	rule := hotRule("r", least, per)
	rule.Hot[0].Kind, rule.Hot[0].Over, rule.Hot[0].Factor = rules.Jump, rules.OverDay, rules.NewFraction(factor, 1)
	return rule
}

// Over random days a key becomes hot with exactly the count that the docs promise: a multiple of
// the median of the days, each represented by the highest of three hours.
func TestJumpOverDaysIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.IntRange(1, 9).Draw(t, "days")
		counts := make([]int64, (days+1)*24)
		for i := range counts {
			counts[i] = rapid.Int64Range(0, 2000).Draw(t, "n")
		}
		least := rapid.Int64Range(1, 40).Draw(t, "least")
		factor := rapid.Int64Range(2, 9).Draw(t, "factor")
		hour := days*24 + rapid.IntRange(1, 22).Draw(t, "hour")
		var tops []int64
		for day := max(1, hour/24-7); day < hour/24; day++ {
			tops = append(tops, slices.Max(counts[24*day+hour%24-1:24*day+hour%24+2]))
		}
		if hour/24 <= 7 { // the detector began an hour before the first day
			tops = append(tops, slices.Max(counts[hour%24-1:hour%24+2]))
		}
		slices.Sort(tops)
		need := max(least, (factor*tops[(len(tops)-1)/2]+59)/60) // of a minute
		for _, c := range []struct {
			n    int64
			want bool
		}{{need - 1, false}, {need, true}} {
			out := newRecorder()
			start := noon.Truncate(24 * time.Hour)
			d := NewDetector(DetectorConfig{Rules: testRules(overDays(least, time.Minute, factor)), Publisher: out, Days: baseline.NewDays("x")})
			d.Advance(start.Add(-time.Hour))
			add := func(at time.Time, n int64) {
				d.Advance(at)
				if n > 0 {
					d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: n, When: at})
				}
			}
			for i := range hour {
				add(start.Add(time.Duration(i)*time.Hour+10*time.Minute), counts[i])
			}
			at := start.Add(time.Duration(hour)*time.Hour + 40*time.Minute)
			add(at.Add(-10*time.Minute), 0)
			if len(out.hot()) > 0 {
				t.Fatal("hot before")
			}
			add(at, c.n)
			if hot := len(out.hot()) == 1; hot != c.want {
				t.Fatalf("%d of %d: hot is %t, want %t", c.n, need, hot, c.want)
			}
		}
	})
}

// wave returns a key's count in a minute of the day: a wave from a tenth at night to the whole in
// the evening.
func wave(minute int) int64 {
	hour := minute / 60 % 24
	if hour >= 19 && hour < 22 {
		return 1000
	}
	return 100
}

// hotMinutes returns the minutes of the last of some days in which the key was hot. An attack of
// 20,000 a minute lasts between the minutes from and to.
func hotMinutes(rule rules.Rule, days *baseline.Days, last, from, to int) (hot []int) {
	out := newRecorder()
	start := noon.Truncate(24 * time.Hour)
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Days: days})
	for minute := range (last + 1) * 24 * 60 {
		of := minute - last*24*60
		n := wave(minute)
		if from <= of && of < to {
			n = 20_000
		}
		for second := 0; second < 60; second += 20 {
			at := start.Add(time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
			d.Advance(at)
			d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: n / 3, When: at})
		}
		if of >= 0 && len(out.hot()) > 0 {
			hot = append(hot, of)
		}
	}
	return hot
}

// The evening's peak is a jump over the recent past, and none over days. An attack of hours
// becomes normal over the recent past, and stays hot over days until it ends.
func TestEveningPeakAndLongAttack(t *testing.T) {
	days, recent := overDays(50, time.Minute, 4), overDays(50, time.Minute, 4)
	recent.Hot[0].Over = rules.OverRecent
	if hot := hotMinutes(recent, nil, 2, 0, 0); len(hot) == 0 {
		t.Error("over the recent past the peak is no jump")
	}
	if hot := hotMinutes(days, baseline.NewDays("x"), 2, 0, 0); len(hot) > 0 {
		t.Errorf("over days the peak is a jump in minutes %v", hot)
	}
	const from, to = 6 * 60, 11 * 60
	if hot := hotMinutes(recent, nil, 2, from, to); slices.Contains(hot, to-60) {
		t.Errorf("over the recent past an attack of hours is hot in minutes %v", hot)
	}
	hot := hotMinutes(days, baseline.NewDays("x"), 2, from, to)
	if len(hot) < to-from || hot[0] != from || hot[to-from-1] != to-1 || hot[len(hot)-1] > to+2 {
		t.Errorf("over days an attack from %d to %d is hot in minutes %v", from, to, hot)
	}
	if a, b := hotMinutes(days, baseline.NewDays("x"), 0, 0, 0), hotMinutes(recent, nil, 0, 0, 0); !slices.Equal(a, b) {
		t.Errorf("on the first day %v is hot over days, %v over the recent past", a, b)
	}
}

// A rule may have both pasts over one window, each with its own state. The climb to the evening's
// peak is a jump over the recent past alone. The first minutes of a long attack are a jump over
// both pasts, and the rest over days only.
func TestBothPastsOverOneWindow(t *testing.T) {
	both, recent, days := overDays(50, time.Minute, 4), overDays(50, time.Minute, 4), overDays(50, time.Minute, 4)
	both.Hot = append(both.Hot, both.Hot[0])
	both.Hot[0].Over, recent.Hot[0].Over = rules.OverRecent, rules.OverRecent
	if err := testRules(both).Validate(); err != nil {
		t.Fatal(err)
	}
	const from, to = 6 * 60, 11 * 60
	got := hotMinutes(both, baseline.NewDays("x"), 2, from, to)
	want := hotMinutes(recent, nil, 2, from, to)
	for _, minute := range hotMinutes(days, baseline.NewDays("x"), 2, from, to) {
		if !slices.Contains(want, minute) {
			want = append(want, minute)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) <= to-from {
		t.Errorf("hot in minutes\n%v, want those of either past\n%v", got, want)
	}
}

// When a rule's jumps are added, removed or change their past, the state of the jump over the same
// past is kept.
func TestReloadKeepsThePast(t *testing.T) {
	both := overDays(50, time.Minute, 4)
	both.Hot = append(both.Hot, both.Hot[0])
	both.Hot[0].Over = rules.OverRecent
	before := layOut(0, &both)
	turned := both
	turned.Hot = []rules.Threshold{both.Hot[1], both.Hot[0]}
	for i, was := range layOut(0, &turned).matchThresholds(before) {
		if was == nil || was.Over != turned.Hot[i].Over {
			t.Errorf("jump %d takes the place of %+v", i, was)
		}
	}
	one := both
	one.Hot = both.Hot[1:]
	if was := layOut(0, &one).matchThresholds(before); was[0] == nil || was[0].Over != rules.OverDay {
		t.Errorf("the jump over days takes the place of %+v", was[0])
	}
	one.Hot = both.Hot[:1]
	other := overDays(50, time.Minute, 4)
	if was := layOut(0, &other).matchThresholds(layOut(0, &one)); was[0] == nil {
		t.Error("a jump whose past changes begins anew")
	}
}

// The days outlive their detector: the next detector of the same keys continues with the earlier
// counts, even if it has another part of the keys or other rules that count the same keys.
func TestDaysOutliveTheDetector(t *testing.T) {
	days := baseline.NewDays("x")
	hotMinutes(overDays(50, time.Minute, 4), days, 2, 0, 0)
	rule := overDays(50, time.Minute, 5)
	out := newRecorder()
	peak := noon.Truncate(24 * time.Hour).Add(3*24*time.Hour + 20*time.Hour)
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Days: days, Part: 1, Parts: 3})
	for second := range 1200 {
		at := peak.Add(time.Duration(second) * time.Second)
		d.Advance(at)
		d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: 60, When: at})
	}
	if hot := out.hot(); len(hot) > 0 {
		t.Fatalf("the peak is hot: %v", hot)
	}
	d.Count(decode.Count{Hash: 1, Text: []byte("GET /s?k=a"), N: 5000, When: peak.Add(20 * time.Minute)})
	if len(out.hot()) != 1 {
		t.Fatal("five times the peak is not hot")
	}
}
