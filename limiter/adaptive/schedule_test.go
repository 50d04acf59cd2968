package adaptive_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter/adaptive"
	"github.com/hotparam/hotparam/rules"
)

func newSchedule(t testing.TB, zone string, hours ...adaptive.Hours) *adaptive.Schedule {
	t.Helper()
	s, err := adaptive.NewSchedule(adaptive.ScheduleConfig{Zone: zone, Hours: hours})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func clockTime(t testing.TB, at string) time.Time {
	t.Helper()
	tm, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func TestSchedule(t *testing.T) {
	s := newSchedule(t, "Europe/Berlin",
		adaptive.Hours{From: 20 * time.Hour, To: 20*time.Hour + 30*time.Minute, Days: []time.Weekday{time.Friday}, Factor: 3}, // a campaign
		adaptive.Hours{From: 9 * time.Hour, To: 21 * time.Hour, Factor: 2},
		adaptive.Hours{From: 23 * time.Hour, To: time.Hour, Days: []time.Weekday{time.Saturday}, Factor: 0.5}, // into Sunday
		adaptive.Hours{From: 12 * time.Hour, To: 13 * time.Hour, Factor: 7},                                   // never: the second comes before
	)
	for _, tc := range []struct {
		at   string
		want float64
		next string
	}{
		{"2026-11-20T08:59:59.999999999+01:00", 1, "2026-11-20T09:00:00+01:00"}, // a Friday
		{"2026-11-20T09:00:00+01:00", 2, "2026-11-20T20:00:00+01:00"},
		{"2026-11-20T12:30:00+01:00", 2, "2026-11-20T20:00:00+01:00"},
		{"2026-11-20T19:00:00Z", 3, "2026-11-20T20:30:00+01:00"},
		{"2026-11-20T20:30:00+01:00", 2, "2026-11-20T21:00:00+01:00"},
		{"2026-11-20T23:30:00+01:00", 1, "2026-11-21T09:00:00+01:00"},
		{"2026-11-21T20:10:00+01:00", 2, "2026-11-21T21:00:00+01:00"},
		{"2026-11-21T23:00:00+01:00", 0.5, "2026-11-22T01:00:00+01:00"},
		{"2026-11-22T00:59:59+01:00", 0.5, "2026-11-22T01:00:00+01:00"},
		{"2026-11-22T01:00:00+01:00", 1, "2026-11-22T09:00:00+01:00"},
		{"2026-11-22T23:30:00+01:00", 1, "2026-11-23T09:00:00+01:00"},
	} {
		at := clockTime(t, tc.at)
		if got := s.At(at); got != tc.want {
			t.Errorf("At(%s) = %v, want %v", tc.at, got, tc.want)
		}
		if got := s.Next(at); !got.Equal(clockTime(t, tc.next)) {
			t.Errorf("Next(%s) = %v, want %s", tc.at, got, tc.next)
		}
	}
}

// The next change may be a week later, or two if it falls in the hour that is skipped when clocks
// go forward.
func TestScheduleWeeks(t *testing.T) {
	s := newSchedule(t, "Europe/Berlin", adaptive.Hours{From: 2 * time.Hour, To: 3 * time.Hour, Days: []time.Weekday{time.Sunday}, Factor: 2})
	for at, want := range map[string]string{
		"2026-03-15T03:00:00+01:00": "2026-03-22T02:00:00+01:00",
		"2026-03-22T03:00:00+01:00": "2026-04-05T02:00:00+02:00",
	} {
		if got := s.Next(clockTime(t, at)); !got.Equal(clockTime(t, want)) {
			t.Errorf("Next(%s) = %v, want %s", at, got, want)
		}
	}
}

// Clocks go forward and back on these days.
func TestScheduleDST(t *testing.T) {
	hours := func(from, to time.Duration) adaptive.Hours { return adaptive.Hours{From: from, To: to, Factor: 2} }
	const h, m = time.Hour, time.Minute
	for _, tc := range []struct {
		what, zone string
		hours      adaptive.Hours
		from, to   string // start and end of the hours; equal if they do not take place that day
	}{
		{"skipped", "Europe/Berlin", hours(2*h, 3*h), "2026-03-29T03:00:00+02:00", "2026-03-29T03:00:00+02:00"},
		{"skipped in part", "Europe/Berlin", hours(2*h+30*m, 4*h), "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		{"skipped at its end", "Europe/Berlin", hours(1*h, 2*h+30*m), "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"shorter", "Europe/Berlin", hours(1*h, 4*h), "2026-03-29T01:00:00+01:00", "2026-03-29T04:00:00+02:00"},
		{"twice", "Europe/Berlin", hours(2*h, 3*h), "2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00"},
		{"begins twice", "Europe/Berlin", hours(2*h+30*m, 3*h), "2026-10-25T02:30:00+02:00", "2026-10-25T03:00:00+01:00"},
		{"ends twice", "Europe/Berlin", hours(1*h, 2*h+30*m), "2026-10-25T01:00:00+02:00", "2026-10-25T02:30:00+02:00"},
		{"longer", "America/New_York", hours(0, 24*h), "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		{"all day", "America/New_York", hours(0, 0), "2026-03-08T00:00:00-05:00", "2026-03-09T00:00:00-04:00"},
		{"no midnight", "America/Sao_Paulo", hours(0, 2*h), "2018-11-04T01:00:00-02:00", "2018-11-04T02:00:00-02:00"},
		{"half an hour", "Australia/Lord_Howe", hours(2*h+15*m, 3*h), "2026-10-04T02:30:00+11:00", "2026-10-04T03:00:00+11:00"},
	} {
		from, to := clockTime(t, tc.from), clockTime(t, tc.to)
		tc.hours.Days = []time.Weekday{from.Weekday()}
		s := newSchedule(t, tc.zone, tc.hours)
		if got := s.At(from.Add(-1)); got != 1 {
			t.Errorf("%s: before: %v", tc.what, got)
		}
		if got := s.At(to); got != 1 {
			t.Errorf("%s: after: %v", tc.what, got)
		}
		if from.Equal(to) {
			continue
		}
		if got := s.Next(from.Add(-1)); !got.Equal(from) {
			t.Errorf("%s: begins %v, want %v", tc.what, got, from)
		}
		if got := s.Next(from); !got.Equal(to) {
			t.Errorf("%s: ends %v, want %v", tc.what, got, to)
		}
		for at := from; at.Before(to); at = at.Add(m) {
			if got := s.At(at); got != 2 {
				t.Errorf("%s: at %v: %v", tc.what, at, got)
			}
		}
	}
}

// The factor stays the same until Next, and changes then.
func TestScheduleNext(t *testing.T) {
	clock := rapid.Custom(func(rt *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 47).Draw(rt, "half hours")) * 30 * time.Minute
	})
	rapid.Check(t, func(rt *rapid.T) {
		var hours []adaptive.Hours
		for range rapid.IntRange(0, 4).Draw(rt, "hours") {
			h := adaptive.Hours{From: clock.Draw(rt, "from"), To: clock.Draw(rt, "to"), Factor: float64(rapid.IntRange(1, 3).Draw(rt, "factor"))}
			for d := range rapid.IntRange(0, 3).Draw(rt, "days") {
				h.Days = append(h.Days, time.Weekday((d*5+1)%7))
			}
			hours = append(hours, h)
		}
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"}).Draw(rt, "zone")
		s := newSchedule(t, zone, hours...)
		start := rapid.SampledFrom([]string{"2026-03-28T11:00:00Z", "2026-10-24T00:07:00Z", "2026-10-31T00:00:00Z", "2011-12-29T00:00:00Z"}).Draw(rt, "start")
		at := clockTime(t, start)
		now, next := s.At(at), s.Next(at)
		if next.IsZero() {
			next = at.Add(9 * 24 * time.Hour)
		} else if !next.After(at) || s.At(next) == now {
			rt.Fatalf("Next(%v) = %v: %v, and %v then", at, next, now, s.At(next))
		}
		for ; at.Before(next); at = at.Add(17 * time.Minute) {
			if s.At(at) != now {
				rt.Fatalf("At(%v) = %v, want %v until %v", at, s.At(at), now, next)
			}
		}
	})
}

func TestScheduleArguments(t *testing.T) {
	for _, h := range []adaptive.Hours{
		{From: -1, Factor: 1}, {From: 24 * time.Hour, Factor: 1}, {To: 24*time.Hour + 1, Factor: 1}, {To: -1, Factor: 1},
		{Factor: 0}, {Factor: -1}, {Factor: 1001}, {Factor: 0.0009}, {Factor: math.NaN()}, {Factor: math.Inf(1)},
		{Factor: 1, Days: []time.Weekday{7}}, {Factor: 1, Days: []time.Weekday{-1}},
	} {
		if _, err := adaptive.NewSchedule(adaptive.ScheduleConfig{Hours: []adaptive.Hours{h}}); err == nil {
			t.Errorf("%+v: no error", h)
		}
	}
	if _, err := adaptive.NewSchedule(adaptive.ScheduleConfig{Zone: "Mars/Olympus"}); err == nil {
		t.Error("a zone that there is not: no error")
	}
	s := newSchedule(t, "")
	for _, at := range []time.Time{{}, time.Unix(1<<60, 0), time.Unix(-1<<60, 0)} {
		if got := s.At(at); got != 1 || !s.Next(at).IsZero() {
			t.Errorf("an empty one at %v: %v, %v", at, got, s.Next(at))
		}
	}
	all := newSchedule(t, "", adaptive.Hours{Factor: 2})
	if at := time.Unix(0, 0); all.At(at) != 2 || !all.Next(at).IsZero() {
		t.Errorf("all day, every day: %v, %v", all.At(at), all.Next(at))
	}
}

func TestScheduleQuota(t *testing.T) {
	at := func(factor float64) (s *adaptive.Schedule, when time.Time) {
		return newSchedule(t, "", adaptive.Hours{Factor: factor}), time.Unix(0, 0)
	}
	rate := func(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }
	for _, tc := range []struct {
		what    string
		factor  float64
		q, want rules.Quota
	}{
		{"twice", 2, rules.Quota{Rate: rate(5, time.Second), Burst: 10}, rules.Quota{Algorithm: rules.TokenBucket, Rate: rate(10, time.Second), Burst: 20}},
		{"whole", 0.7, rules.Quota{Rate: rate(10, time.Second), Burst: 10}, rules.Quota{Algorithm: rules.TokenBucket, Rate: rate(7, time.Second), Burst: 7}},
		{"not whole", 0.5, rules.Quota{Rate: rate(5, time.Second), Burst: 5, Missing: 5},
			rules.Quota{Algorithm: rules.TokenBucket, Rate: rate(5, 2*time.Second), Burst: 2, Missing: 2}},
		{"below one", 0.25, rules.Quota{Algorithm: rules.LeakyBucket, Rate: rate(1, time.Second), Burst: 1},
			rules.Quota{Algorithm: rules.LeakyBucket, Rate: rate(1, 4*time.Second), Burst: 1}},
		{"a window", 0.5, rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(5, time.Minute), Blocks: 6},
			rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(2, time.Minute), Burst: 2, Blocks: 6}},
		{"a window of less than one", 0.1, rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(2, time.Minute), Burst: 2},
			rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(1, 5*time.Minute), Burst: 1}},
		{"a day of less than one", 0.1, rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(2, 24*time.Hour), Calendar: rules.CalendarDay},
			rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(1, 24*time.Hour), Burst: 1, Calendar: rules.CalendarDay}},
		{"a log that is too long", 10, rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(50_000, time.Minute)},
			rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(rules.MaxLog, time.Minute), Burst: rules.MaxLog}},
		{"faster than may be", 10, rules.Quota{Rate: rate(rules.MaxRate/2, time.Second), Burst: 1},
			rules.Quota{Algorithm: rules.TokenBucket, Rate: rate(rules.MaxRate, time.Second), Burst: 10}},
		{"faster than may be, and not whole", 1.5, rules.Quota{Rate: rate(3, 400*time.Nanosecond), Burst: 2},
			rules.Quota{Algorithm: rules.TokenBucket, Rate: rate(4, 400*time.Nanosecond), Burst: 3}},
		{"as it is", 1, rules.Quota{Rate: rate(5, time.Second)}, rules.Quota{Rate: rate(5, time.Second)}},
		{"unlimited", 0.5, rules.Quota{Burst: rules.Unlimited}, rules.Quota{Burst: rules.Unlimited}},
	} {
		s, when := at(tc.factor)
		if got := s.Quota(tc.q, when); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, got, tc.want)
		}
	}
	half, when := at(0.5)
	for _, tc := range []struct{ n, want int64 }{{10, 5}, {5, 2}, {1, 1}, {0, 1}, {math.MinInt64, 1}, {math.MaxInt64, 1 << 62}} {
		if got := half.Scale(tc.n, when); got != tc.want {
			t.Errorf("Scale(%d) = %d, want %d", tc.n, got, tc.want)
		}
	}

	rapid.Check(t, func(rt *rapid.T) {
		q := rules.Quota{
			Algorithm: rapid.SampledFrom(rules.Algorithms).Draw(rt, "algorithm"),
			Rate: rules.Rate{
				N:   rapid.Int64Range(1, 1_000_000).Draw(rt, "n"),
				Per: time.Duration(rapid.Int64Range(1, int64(400*24*time.Hour)).Draw(rt, "per")),
			},
			Burst: rapid.Int64Range(1, 1_000_000).Draw(rt, "burst"),
		}.WithDefaults()
		if q.Validate() != nil {
			rt.Skip("no quota")
		}
		factor := math.Pow(10, rapid.Float64Range(-3, 3).Draw(rt, "exponent"))
		s, when := at(min(max(factor, 0.001), 1000))
		p := s.Quota(q, when)
		if err := p.Validate(); err != nil {
			rt.Fatalf("%+v × %v: %+v: %v", q, factor, p, err)
		}
		was, is := float64(q.Rate.N)/float64(q.Rate.Per), float64(p.Rate.N)/float64(p.Rate.Per)
		if factor < 1 && is > was*(1+1e-6) || factor > 1 && is < was*(1-1e-6) {
			rt.Fatalf("%+v × %v: %+v: the wrong way", q, factor, p)
		}
	})
}
