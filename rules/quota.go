package rules

import (
	"fmt"
	"strings"
	"time"
)

// Algorithm names the way a limiter counts. The name of a custom algorithm begins with "x_"; the
// program passes its implementation to the limiter.
type Algorithm string

// Algorithms. Package limiter documents what each promises.
const (
	TokenBucket   Algorithm = "token_bucket" // the default
	GCRA          Algorithm = "gcra"         // the token bucket, with the results of redis-cell
	LeakyBucket   Algorithm = "leaky_bucket"
	FixedWindow   Algorithm = "fixed_window"
	SlidingLog    Algorithm = "sliding_log"
	SlidingBlocks Algorithm = "sliding_blocks"
)

// Algorithms lists the built-in algorithms.
var Algorithms = []Algorithm{TokenBucket, GCRA, LeakyBucket, FixedWindow, SlidingLog, SlidingBlocks}

// Custom reports whether a is the name of a custom algorithm.
func (a Algorithm) Custom() bool { return strings.HasPrefix(string(a), "x_") && ValidRuleID(string(a)) }

// Windowed reports whether a counts the permits taken within a window. Its burst is the rate's
// count.
func (a Algorithm) Windowed() bool { return a == FixedWindow || a == SlidingLog || a == SlidingBlocks }

// Bucket reports whether a is a bucket, which earns permits continuously.
func (a Algorithm) Bucket() bool {
	return a == "" || a == TokenBucket || a == GCRA || a == LeakyBucket
}

// Unlimited as a burst means that everything passes.
const Unlimited int64 = -1

// Calendar is a natural period with which fixed windows begin.
type Calendar string

// Calendars. A week begins on Monday.
const (
	CalendarSecond Calendar = "second"
	CalendarMinute Calendar = "minute"
	CalendarHour   Calendar = "hour"
	CalendarDay    Calendar = "day"
	CalendarWeek   Calendar = "week"
	CalendarMonth  Calendar = "month"
	CalendarYear   Calendar = "year"
)

// CalendarPeriods are the nominal lengths of the calendars. With a calendar, Rate.Per must be its
// length.
var CalendarPeriods = map[Calendar]time.Duration{
	CalendarSecond: time.Second, CalendarMinute: time.Minute, CalendarHour: time.Hour, CalendarDay: 24 * time.Hour,
	CalendarWeek: 7 * 24 * time.Hour, CalendarMonth: 30 * 24 * time.Hour, CalendarYear: 365 * 24 * time.Hour,
}

// Quota is how much may pass, and by which algorithm that is counted.
type Quota struct {
	Algorithm Algorithm // empty means TokenBucket
	Rate      Rate
	// Burst is the number of permits that can be taken at once: tokens of a bucket, places in a
	// queue. Algorithms with windows have Rate.N of them. Unlimited means no limit.
	Burst int64
	// Missing is the number of tokens that a new token bucket lacks to its burst. Zero means that
	// it starts full.
	Missing int64
	// Shape makes a leaky bucket a queue: admitted permits wait for their turn and leave one by
	// one, at the rate. Without Shape the bucket only measures.
	Shape bool
	// WarmUp is the time that an idle token bucket takes to reach its full rate, from a
	// ColdFactor-th of it. Zero means at once.
	WarmUp     time.Duration
	ColdFactor float64 // above 1; zero means 3
	// Calendar makes fixed windows begin with natural periods of a time zone. If it is empty, a
	// window begins with the first permit that is taken in it.
	Calendar Calendar
	Zone     string // an IANA name; empty means UTC
	// Blocks is the number of blocks in a window of sliding blocks, which sets their precision.
	// Zero means DefaultBlocks.
	Blocks int
	// CountDenied also counts requests that an algorithm with windows denies. A client that keeps
	// asking is then kept out.
	CountDenied bool
	// Penalty is how long a key is locked after a denial. Requests during that time do not
	// prolong it. Zero means that the key is not locked.
	Penalty time.Duration
}

// Defaults and bounds of a quota.
const (
	defaultColdFactor = 3
	DefaultBlocks     = 10
	MaxBlocks         = 1000
	MaxLog            = 100_000 // permits of a sliding log, which records each of them
	MaxPenalty        = 366 * 24 * time.Hour
	maxWarmUp         = 24 * time.Hour
	maxColdFactor     = 1000
)

// WithDefaults returns the quota with its defaults filled in. An invalid rate does not set the
// burst: a count of -1 does not become Unlimited.
func (q Quota) WithDefaults() Quota {
	if q.Algorithm == "" {
		q.Algorithm = TokenBucket
	}
	if q.Algorithm.Windowed() && q.Burst != Unlimited || q.Burst == 0 {
		q.Burst = max(q.Rate.N, 0)
	}
	if q.Algorithm == SlidingBlocks && q.Blocks == 0 {
		q.Blocks = DefaultBlocks
	}
	if q.WarmUp > 0 && q.ColdFactor == 0 {
		q.ColdFactor = defaultColdFactor
	}
	return q
}

// Validate reports the errors of a quota as [FieldErrors], with the field names of the rules
// file. It does not allocate for a valid quota.
func (q *Quota) Validate() error { return q.validate().err() }

// wantSpan is the message for a duration that is out of its bounds.
const wantSpan = "want %v to %v"

const (
	limitHint  = "for example limit: 50/s, or limit: {rate: 50/s, burst: 100}"
	burstHint  = "lower the burst or raise the rate"
	coldHint   = "3 begins with a third of the rate"
	blocksHint = "blocks: 10 counts a minute in blocks of 6s"
	shapeHint  = "for example {algorithm: leaky_bucket, shape: true, rate: 50/s, wait: 2s}"
	deniedHint = "for example {algorithm: sliding_log, rate: 5/1m, count_denied: true}"
)

func (q *Quota) validate() (bad FieldErrors) {
	if q.Burst == Unlimited {
		return nil
	}
	q.validateNumbers(&bad)
	if len(bad) == 0 {
		q.validateRate(&bad)
	}
	if len(bad) == 0 {
		q.validateBucket(&bad)
	}
	if len(bad) == 0 {
		q.validateWindow(&bad)
	}
	return bad
}

// validateNumbers reports numbers that are out of bounds, whatever the other fields are.
func (q *Quota) validateNumbers(bad *FieldErrors) {
	if q.WarmUp == 0 && q.ColdFactor == 0 && q.Blocks == 0 && q.Penalty == 0 {
		return
	}
	if q.WarmUp < 0 || q.WarmUp > maxWarmUp {
		bad.add("limit.warm_up", q.WarmUp.String(), "for example 30s", wantSpan, time.Millisecond, maxWarmUp)
	}
	if q.ColdFactor != 0 && !(q.ColdFactor > 1 && q.ColdFactor <= maxColdFactor) {
		bad.add("limit.cold_factor", quoted(fmt.Sprint(q.ColdFactor)), coldHint, "want a number above 1, at most %d", maxColdFactor)
	}
	if q.Blocks < 0 || q.Blocks > MaxBlocks {
		bad.add("limit.blocks", quoted(fmt.Sprint(q.Blocks)), blocksHint, "want a whole number of 1 to %d", MaxBlocks)
	}
	if q.Penalty < 0 || q.Penalty > MaxPenalty {
		bad.add("limit.penalty", q.Penalty.String(), "for example 30s", wantSpan, time.Millisecond, MaxPenalty)
	}
}

func (q *Quota) validateRate(bad *FieldErrors) {
	switch {
	case q.Rate.IsZero():
		bad.addSentence("limit.rate", limitHint, "limit.rate is missing")
	case q.Rate.N < 0:
		bad.add("limit.rate", quoted(q.Rate.String()), limitHint, "must be positive; for no limit at all set Burst to Unlimited").needs("limit")
	case q.Rate.N < 1 || q.Rate.Per <= 0 || q.Rate.PerSecond() > MaxRate:
		bad.add("limit.rate", quoted(q.Rate.String()), limitHint, "must be positive and at most %d per second", MaxRate).needs("limit")
	case q.Burst < 1:
		bad.add("limit.burst", fmt.Sprint(q.Burst), burstHint, "must be at least 1").needs("limit")
	case q.Burst > (1<<61)/q.Rate.Interval():
		bad.add("limit.burst", fmt.Sprint(q.Burst), burstHint, "a bucket of so many tokens takes over 73 years to fill at %s", q.Rate).needs("limit")
	case q.Algorithm.Windowed() && q.Burst != q.Rate.N:
		bad.add("limit.burst", fmt.Sprint(q.Burst), burstHint, "%s has no burst but the rate's count, %d", q.Algorithm, q.Rate.N).needs("limit")
	case q.Algorithm == SlidingLog && q.Burst > MaxLog:
		bad.add("limit.rate", quoted(q.Rate.String()), "sliding_blocks counts any number, to a part of the window", "a sliding log remembers each permit, at most %d", MaxLog).needs("limit")
	case !q.isToken() && q.Algorithm != LeakyBucket && !q.Algorithm.Windowed() && !q.Algorithm.Custom():
		bad.add("limit.algorithm", quoted(string(q.Algorithm)), "for example token_bucket", "no algorithm has this name; names of custom algorithms begin with x_").needs("limit")
	}
}

// isToken reports whether the quota counts in tokens.
func (q *Quota) isToken() bool {
	return q.Algorithm == "" || q.Algorithm == TokenBucket || q.Algorithm == GCRA
}

// validateBucket reports the errors of the fields that only buckets have.
func (q *Quota) validateBucket(bad *FieldErrors) {
	if q.Missing == 0 && q.WarmUp == 0 && q.ColdFactor == 0 && !q.Shape {
		return // the common case: limiters validate quotas while requests wait
	}
	custom := q.Algorithm.Custom()
	token := q.isToken() || custom
	switch {
	case q.Missing != 0 && !token:
		bad.add("limit.initial", "", initialHint, "only a token bucket has it, not %s", q.Algorithm).needs("limit")
	case q.Missing < 0 || q.Missing > q.Burst:
		bad.add("limit.initial", fmt.Sprint(q.Burst-q.Missing), initialHint, "must be 0 to the burst, %d", q.Burst).needs("limit")
	case q.WarmUp != 0 && !token:
		bad.add("limit.warm_up", "", warmUpHint, "only a token bucket has it, not %s", q.Algorithm).needs("limit")
	case q.WarmUp > 0 && q.Missing > 0:
		bad.add("limit.warm_up", "", warmUpHint, "a bucket that warms up starts cold, and has no limit.initial").needs("limit")
	case q.ColdFactor != 0 && q.WarmUp == 0:
		bad.add("limit.cold_factor", fmt.Sprint(q.ColdFactor), "for example {rate: 50/s, warm_up: 30s, cold_factor: 3}", "goes with warm_up, above 1 and at most %d", maxColdFactor).needs("limit")
	case q.Shape && q.Algorithm != LeakyBucket && !custom:
		bad.add("limit.shape", "", shapeHint, "only leaky_bucket has it, not %s", q.Algorithm).needs("limit")
	}
}

const (
	initialHint = "for example {rate: 50/s, burst: 100, initial: 10}"
	warmUpHint  = "for example {rate: 50/s, warm_up: 30s}"
)

const (
	calendarHint = "for example {algorithm: fixed_window, rate: 1000/1d, calendar: day}; a month is 30d, a year 365d"
	zoneHint     = "for example {algorithm: fixed_window, rate: 1000/1d, calendar: day, zone: Europe/Berlin}"
)

// validateWindow reports the errors of the fields that only windows have.
func (q *Quota) validateWindow(bad *FieldErrors) {
	if q.Calendar == "" && q.Zone == "" && q.Blocks == 0 && !q.CountDenied {
		return
	}
	custom := q.Algorithm.Custom()
	switch period := CalendarPeriods[q.Calendar]; {
	case q.Calendar != "" && q.Algorithm != FixedWindow && !custom:
		bad.add("limit.calendar", "", calendarHint, "only fixed_window has it, not %s", q.Algorithm).needs("limit")
	case q.Calendar != "" && period == 0:
		bad.add("limit.calendar", quoted(string(q.Calendar)), calendarHint, "want second, minute, hour, day, week, month or year").needs("limit")
	case q.Calendar != "" && period != q.Rate.Per:
		bad.add("limit.calendar", quoted(string(q.Calendar)), calendarHint, "the rate is over %v, want %v", q.Rate.Per, period).needs("limit")
	case q.Zone != "" && q.Calendar == "":
		bad.add("limit.zone", quoted(q.Zone), zoneHint, "goes with calendar").needs("limit")
	case q.Blocks != 0 && q.Algorithm != SlidingBlocks && !custom:
		bad.add("limit.blocks", "", "for example {algorithm: sliding_blocks, rate: 100/1m, blocks: 12}", "only sliding_blocks has them, not %s", q.Algorithm).needs("limit")
	case q.CountDenied && !q.Algorithm.Windowed() && !custom:
		bad.add("limit.count_denied", "", deniedHint, "only algorithms with windows have it, not %s", q.Algorithm).needs("limit")
	case q.Zone != "":
		if _, err := time.LoadLocation(q.Zone); err != nil {
			bad.add("limit.zone", quoted(q.Zone), zoneHint, "%v", err).needs("limit")
		}
	}
}
