package hotparam

import (
	"strings"
	"time"
)

// Algorithm names how a limiter counts. A name of your own begins with "x_" and is
// given to the limiter in code.
type Algorithm string

// Algorithms. Package limiter tells what each promises.
const (
	TokenBucket   Algorithm = "token_bucket" // the default
	GCRA          Algorithm = "gcra"         // the token bucket, told as redis-cell tells it
	LeakyBucket   Algorithm = "leaky_bucket"
	FixedWindow   Algorithm = "fixed_window"
	SlidingLog    Algorithm = "sliding_log"
	SlidingBlocks Algorithm = "sliding_blocks"
)

// Algorithms are the built-in ones.
var Algorithms = []Algorithm{TokenBucket, GCRA, LeakyBucket, FixedWindow, SlidingLog, SlidingBlocks}

// Custom tells whether it is one of the user's own.
func (a Algorithm) Custom() bool { return strings.HasPrefix(string(a), "x_") && ValidRuleID(string(a)) }

// Windowed tells whether it counts what passed within a window, and so has no
// burst but the rate's count.
func (a Algorithm) Windowed() bool { return a == FixedWindow || a == SlidingLog || a == SlidingBlocks }

// Unlimited as a burst lets everything pass.
const Unlimited int64 = -1

// Calendar is a natural period that fixed windows begin with.
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

// CalendarPeriods are the nominal lengths of the calendars: what Rate.Per is where
// one is set.
var CalendarPeriods = map[Calendar]time.Duration{
	CalendarSecond: time.Second, CalendarMinute: time.Minute, CalendarHour: time.Hour, CalendarDay: 24 * time.Hour,
	CalendarWeek: 7 * 24 * time.Hour, CalendarMonth: 30 * 24 * time.Hour, CalendarYear: 365 * 24 * time.Hour,
}

// Quota is how much may pass, and how that is reckoned.
type Quota struct {
	Algorithm Algorithm // empty: TokenBucket
	Rate      Rate
	// Burst is how many permits may be taken at once: tokens of a bucket, places
	// in a queue. Algorithms with windows have Rate.N of them. Unlimited: no limit.
	Burst int64
	// Missing is by how many tokens a token bucket that is new falls short of its
	// burst; 0: it starts full.
	Missing int64
	// Shape makes a leaky bucket a queue: what is admitted leaves one by one, at
	// the rate, and has to wait for its turn. Else the bucket only measures.
	Shape bool
	// WarmUp is how long a token bucket that was idle takes to come to its full
	// rate, from a ColdFactor-th of it; 0: it has it at once.
	WarmUp     time.Duration
	ColdFactor float64 // above 1; 0: DefaultColdFactor
	// Calendar makes fixed windows begin with natural periods of a time zone;
	// empty: a window begins with the first that is taken in it.
	Calendar Calendar
	Zone     string // an IANA name; empty: UTC
	// Blocks is the precision of sliding blocks: how many make a window; 0:
	// DefaultBlocks.
	Blocks int
	// CountDenied counts also what an algorithm with windows denies, so that who
	// hammers stays out.
	CountDenied bool
	// Penalty locks a key after a denial, for so long; what comes meanwhile does
	// not prolong it. 0: it does not.
	Penalty time.Duration
}

// Defaults and bounds of a quota.
const (
	DefaultColdFactor = 3
	DefaultBlocks     = 10
	MaxBlocks         = 1000
	MaxLog            = 100_000 // permits of a sliding log, which remembers each
	MaxPenalty        = 366 * 24 * time.Hour
	MaxWarmUp         = 24 * time.Hour
	MaxColdFactor     = 1000
)

// WithDefaults is the quota with its defaults filled in. A rate that cannot be is no
// burst: one of -1 does not become Unlimited.
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
		q.ColdFactor = DefaultColdFactor
	}
	return q
}

// Validate tells what is wrong with a quota, by the names of the rules file: a
// [*LimitError].
func (q *Quota) Validate() error {
	if q.Burst == Unlimited {
		return nil
	}
	if err := q.validateRate(); err != nil {
		return err
	}
	return q.validateExtras()
}

func (q *Quota) validateRate() error {
	token := q.Algorithm == "" || q.Algorithm == TokenBucket || q.Algorithm == GCRA
	switch {
	case q.Rate.N < 0:
		return badLimit("rate", "%q: must be positive; for no limit at all set Burst to Unlimited", q.Rate)
	case q.Rate.N < 1 || q.Rate.Per <= 0 || q.Rate.PerSecond() > MaxRate:
		return badLimit("rate", "%q: must be positive and at most %d per second", q.Rate, MaxRate)
	case q.Burst < 1:
		return badLimit("burst", "%d: must be at least 1", q.Burst)
	case q.Burst > (1<<61)/tokenInterval(q.Rate):
		return badLimit("burst", "%d: a bucket of so many tokens takes over 73 years to fill at %s", q.Burst, q.Rate)
	case q.Algorithm.Windowed() && q.Burst != q.Rate.N:
		return badLimit("burst", "%d: %s has no burst but the rate's count, %d", q.Burst, q.Algorithm, q.Rate.N)
	case q.Algorithm == SlidingLog && q.Burst > MaxLog:
		return badLimit("rate", "%q: a sliding log remembers each permit, at most %d", q.Rate, MaxLog)
	case !token && q.Algorithm != LeakyBucket && !q.Algorithm.Windowed() && !q.Algorithm.Custom():
		return badLimit("algorithm", "%q: there is none of this name; one of your own begins with x_", q.Algorithm)
	case q.Missing != 0 && !token && !q.Algorithm.Custom():
		return badLimit("initial", "only a token bucket has it, not %s", q.Algorithm)
	case q.Missing < 0 || q.Missing > q.Burst:
		return badLimit("initial", "%d: must be 0 to the burst, %d", q.Burst-q.Missing, q.Burst)
	case q.WarmUp != 0 && !token && !q.Algorithm.Custom():
		return badLimit("warm_up", "only a token bucket has it, not %s", q.Algorithm)
	case q.WarmUp < 0 || q.WarmUp > MaxWarmUp:
		return badLimit("warm_up", "%v: must be positive and at most 24h", q.WarmUp)
	case q.WarmUp > 0 && q.Missing > 0:
		return badLimit("warm_up", "a bucket that warms up starts cold, and has no limit.initial")
	case q.ColdFactor != 0 && (q.WarmUp == 0 || !(q.ColdFactor > 1 && q.ColdFactor <= MaxColdFactor)):
		return badLimit("cold_factor", "%v: goes with warm_up, above 1 and at most %d", q.ColdFactor, MaxColdFactor)
	}
	return nil
}

func (q *Quota) validateExtras() error {
	custom := q.Algorithm.Custom()
	switch {
	case q.Shape && q.Algorithm != LeakyBucket && !custom:
		return badLimit("shape", "only leaky_bucket has it, not %s", q.Algorithm)
	case q.Calendar != "" && q.Algorithm != FixedWindow && !custom:
		return badLimit("calendar", "only fixed_window has it, not %s", q.Algorithm)
	case q.Calendar != "" && CalendarPeriods[q.Calendar] == 0:
		return badLimit("calendar", "%q: want second, minute, hour, day, week, month or year", q.Calendar)
	case q.Calendar != "" && CalendarPeriods[q.Calendar] != q.Rate.Per:
		return badLimit("calendar", "%q: the rate is over %v, want %v", q.Calendar, q.Rate.Per, CalendarPeriods[q.Calendar])
	case q.Zone != "" && q.Calendar == "":
		return badLimit("zone", "%q: goes with calendar", q.Zone)
	case q.Blocks != 0 && q.Algorithm != SlidingBlocks && !custom:
		return badLimit("blocks", "only sliding_blocks has them, not %s", q.Algorithm)
	case q.Blocks < 0 || q.Blocks > MaxBlocks:
		return badLimit("blocks", "%d: must be 1 to %d", q.Blocks, MaxBlocks)
	case q.CountDenied && !q.Algorithm.Windowed() && !custom:
		return badLimit("count_denied", "only algorithms with windows have it, not %s", q.Algorithm)
	case q.Penalty < 0 || q.Penalty > MaxPenalty:
		return badLimit("penalty", "%v: must be positive and at most 366 days", q.Penalty)
	}
	if q.Zone != "" {
		if _, err := time.LoadLocation(q.Zone); err != nil {
			return badLimit("zone", "%q: %v", q.Zone, err)
		}
	}
	return nil
}

// tokenInterval is the time that earns one token, in nanoseconds.
func tokenInterval(r Rate) int64 { return (int64(r.Per) + r.N - 1) / r.N }
