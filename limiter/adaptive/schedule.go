package adaptive

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Schedule scales limits by the time of day and week in a time zone: up while a campaign runs,
// down while backups do. It is a pure function of the time, and safe for concurrent use.
//
// It applies nothing on its own. Apply it now and at each Next, for example to the quota of a
// limiter or the Max of a [Limiter]:
//
//	err := l.SetQuota(schedule.Quota(base, time.Now()))
type Schedule struct {
	zone  *time.Location
	hours []Hours
}

// ScheduleConfig configures a [Schedule].
type ScheduleConfig struct {
	Zone string // an IANA name; empty means UTC
	// Hours are checked in order, and the first that contains the time sets the factor.
	// Outside all of them the factor is 1.
	Hours []Hours
}

// Hours is a span of the clock on some days.
type Hours struct {
	// From and To are times on the clock, as the duration since midnight; From is included. A
	// To that is not after From is on the next day.
	From, To time.Duration
	// Days are the days on which it begins. None means every day.
	Days []time.Weekday
	// Factor scales the limit: 1/1000 to 1000.
	Factor float64
}

// maxFactor is the largest factor by which a schedule raises or lowers a limit.
const maxFactor = 1000

const minFactor = 1.0 / maxFactor

// NewSchedule returns a Schedule.
func NewSchedule(c ScheduleConfig) (*Schedule, error) {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return nil, fmt.Errorf("adaptive: schedule: zone %q: %w", c.Zone, err)
	}
	s := &Schedule{zone: zone}
	for i, h := range c.Hours {
		if err := h.validate(); err != nil {
			return nil, fmt.Errorf("adaptive: schedule: hours %d: %w", i+1, err)
		}
		h.Days = slices.Clone(h.Days)
		s.hours = append(s.hours, h)
	}
	return s, nil
}

const clockDay = 24 * time.Hour // of the clock; DST makes some longer, some shorter

func (h *Hours) validate() error {
	switch {
	case h.From < 0 || h.From >= clockDay:
		return fmt.Errorf("from %v: must be 0 to less than 24h", h.From)
	case h.To < 0 || h.To > clockDay:
		return fmt.Errorf("to %v: must be 0 to 24h", h.To)
	case !(h.Factor >= minFactor && h.Factor <= maxFactor):
		return fmt.Errorf("factor %v: must be %v to %d", h.Factor, minFactor, maxFactor)
	}
	for _, d := range h.Days {
		if d < time.Sunday || d > time.Saturday {
			return fmt.Errorf("day %d: there is none", d)
		}
	}
	return nil
}

// At returns the factor at t.
func (s *Schedule) At(t time.Time) float64 {
	for i := range s.hours {
		for day := -1; day <= 0; day++ { // hours that began yesterday may last until today
			if from, to, ok := s.span(&s.hours[i], t, day); ok && !t.Before(from) && t.Before(to) {
				return s.hours[i].Factor
			}
		}
	}
	return 1
}

// Next returns the first time after t at which the factor changes, in the schedule's zone, or
// the zero time if it never does.
func (s *Schedule) Next(t time.Time) time.Time {
	var changes []time.Time
	for i := range s.hours {
		for day := -1; day <= 14; day++ { // a week, or two if DST skips the hours in one
			if from, to, ok := s.span(&s.hours[i], t, day); ok {
				changes = append(changes, from, to)
			}
		}
	}
	slices.SortFunc(changes, time.Time.Compare)
	now := s.At(t)
	for _, change := range changes {
		if change.After(t) && s.At(change) != now {
			return change
		}
	}
	return time.Time{}
}

// span returns the hours that begin the given number of days after t, and whether there are
// any.
func (s *Schedule) span(h *Hours, t time.Time, days int) (from, to time.Time, ok bool) {
	year, month, day := t.In(s.zone).Date()
	day += days
	if len(h.Days) > 0 && !slices.Contains(h.Days, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()) {
		return time.Time{}, time.Time{}, false
	}
	until := h.To
	if until <= h.From {
		until += clockDay
	}
	return s.clockInstant(year, month, day, h.From), s.clockInstant(year, month, day, until), true
}

// clockInstant returns the instant at which the clock shows that time of a day. It is the first one
// if there are two, or the instant of the change if daylight saving skips that time.
func (s *Schedule) clockInstant(year int, month time.Month, day int, sinceMidnight time.Duration) time.Time {
	shown := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Add(sinceMidnight)
	_, before := shown.Add(-clockDay).In(s.zone).Zone()
	_, after := shown.Add(clockDay).In(s.zone).Zone()
	first := shown.Add(-time.Duration(max(before, after)) * time.Second).In(s.zone)
	last := shown.Add(-time.Duration(min(before, after)) * time.Second).In(s.zone)
	for _, t := range []time.Time{first, last} {
		if _, offset := t.Zone(); t.Add(time.Duration(offset) * time.Second).Equal(shown) {
			return t
		}
	}
	_, forward := first.ZoneBounds()
	return forward
}

// Scale returns the limit n at t, at least 1: a concurrency, or the Max of a [Limiter].
func (s *Schedule) Scale(n int64, t time.Time) int64 { return scaled(n, s.At(t)) }

// Quota returns the quota at t: rate and burst times the factor, at least one permit and at
// most the limits of a quota.
func (s *Schedule) Quota(q rules.Quota, t time.Time) rules.Quota {
	return scaledQuota(q, s.At(t))
}

// scaled returns n × factor, rounded down, but at least 1.
func scaled(n int64, factor float64) int64 {
	product := math.Floor(float64(n) * factor * (1 + 1e-12)) // 10 × 0.7 is 7
	return int64(min(max(product, 1), 1<<62))
}

// scaledQuota returns q with rate and burst times factor. If the rate is then not a whole
// number of permits, its period changes. For a bucket only the quotient matters. For a window
// the period changes only below one permit.
func scaledQuota(q rules.Quota, factor float64) rules.Quota {
	if factor == 1 || q.Burst == rules.Unlimited {
		return q
	}
	factor = max(factor, minFactor)
	p := q.WithDefaults()
	p.Rate = scaledRate(&p, factor)
	if p.Algorithm.Windowed() {
		p.Burst = p.Rate.N
	} else {
		p.Burst = scaled(p.Burst, factor)
		p.Missing = min(int64(float64(p.Missing)*factor), p.Burst)
	}
	if p.Validate() != nil { // at the limits of a quota
		return q
	}
	return p
}

func scaledRate(q *rules.Quota, factor float64) rules.Rate {
	r, windowed := q.Rate, q.Algorithm.Windowed()
	n := float64(r.N) * factor
	if n < 1 && windowed {
		factor *= float64(r.N)
		r.N = 1
	}
	whole := n >= 1 && (windowed || math.Abs(n-math.Round(n)) < n*1e-9)
	if per := math.Round(float64(r.Per) / factor); !whole && q.Calendar == "" && per >= 1 && per < 1<<61 {
		if exact := (rules.Rate{N: r.N, Per: time.Duration(per)}); exact.PerSecond() <= rules.MaxRate {
			return exact
		}
	}
	limit := min(rules.MaxRate*r.Per.Seconds(), 1<<62)
	if q.Algorithm == rules.SlidingLog {
		limit = min(limit, rules.MaxLog)
	}
	return rules.Rate{N: max(min(scaled(r.N, factor), int64(limit)), 1), Per: r.Per}
}
