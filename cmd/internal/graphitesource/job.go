package graphitesource

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// job is the state of the polls. It is not safe for concurrent use.
type job struct {
	cfg      *Config
	client   *renderClient
	watches  []watch
	byRule   map[string]int // rule → watch
	detector *aggregator.Detector
	hot      *hotSet
	ledger   *pointLedger

	step     int64 // seconds
	reread   int64 // number of points that are read again, as they may come late
	lookback int64 // number of points that matter
	patience time.Duration

	begun  bool       // known is valid
	known  int64      // newest point whose counts are complete
	named  [][]string // keys to request by name, by watch
	counts []newCount

	adopted []published.Hot // keys that stay hot until the first points are counted

	tooMuch    bool      // the previous request was probably too large
	failures   int       // number of failures in a row
	next       time.Time // earliest time of the next request
	outage     *loglimit.Outage
	clockLines loglimit.Limit
	differs    bool // the clocks differ, and that was logged
	shown      jobState
}

const (
	// reread is how far back points are read again. A new series appears only when carbon has
	// created its file, a second later or more.
	reread = 10 * time.Second
	// longestLookback bounds how far back points are read.
	longestLookback = time.Hour
	// outageEvery is the least time between two logged outages, each with its end, however often
	// Graphite fails and recovers.
	outageEvery = 10 * time.Second
	// firstPause and longestPause bound the time between two attempts while Graphite does not
	// answer.
	firstPause   = time.Second
	longestPause = 15 * time.Second
)

func newJob(c *Config, api *renderClient, patience time.Duration) *job {
	j := &job{
		cfg: c, client: api, watches: c.watches(), byRule: make(map[string]int),
		hot:  &hotSet{Publisher: c.Publisher, keys: make(map[rules.Key]struct{})},
		step: int64(c.Step / time.Second), patience: patience,
		outage: &loglimit.Outage{},
	}
	j.reread = max(3, int64(reread/c.Step))
	keep := j.reread
	for i := range j.watches {
		w := &j.watches[i]
		j.byRule[c.Rules.Rules[w.number].ID] = i
		if w.above > 0 {
			keep = max(keep, w.span+j.reread)
		}
	}
	j.lookback = max(keep, min(int64(decode.Lookback(c.Rules)/c.Step)+j.reread, int64(longestLookback/c.Step)))
	scale := 1.0
	if c.Rate {
		scale = c.Step.Seconds()
	}
	j.ledger = newLedger(newNames(c, j.watches), keep, scale)
	j.detector = j.newDetector()
	j.shown.moved = time.Now()
	return j
}

func (j *job) newDetector() *aggregator.Detector {
	c := j.cfg
	return aggregator.NewDetector(aggregator.DetectorConfig{
		Rules: c.Rules, Publisher: j.hot, Memory: c.Memory, Days: c.Days, Grace: time.Duration(j.reread) * c.Step, RateSpan: c.Step, OnTops: c.OnTops,
	})
}

// poll queries Graphite and counts the answer, unless a query failed a short while ago.
func (j *job) poll(ctx context.Context) {
	now := time.Now()
	if now.Before(j.next) {
		return
	}
	r, err := j.read(ctx)
	if err == nil {
		err = j.count(r)
	}
	if ctx.Err() != nil {
		return
	}
	j.recordOutcome(time.Now(), err)
	j.detector.Refresh()
	j.shown.stats.Detector = j.detector.Stats()
}

// recordOutcome records the outcome of a poll.
func (j *job) recordOutcome(now time.Time, err error) {
	j.shown.why = ""
	var why *failure
	if !errors.As(err, &why) {
		j.failures = 0
		return
	}
	j.shown.failures[why.reason]++
	j.shown.why = why.Error()
	j.outage.Failed(j.cfg.Log, outageEvery, now, "Graphite gives no counts: nothing becomes hot and nothing cools until it does", "reason", why.reason, "err", why.err)
	if why.reason == silent { // Graphite answers
		j.failures = 0
		return
	}
	j.failures++
	j.next = now.Add(base.Backoff(j.failures-1, firstPause, longestPause))
}

// pointRequest asks for a number of points that begin at from, or that end now if from is 0.
type pointRequest struct{ from, points int64 }

// read asks for all points after the newest known one, and for those that may still change.
// After an outage these can be too many. Then read falls back to the latest points, if these can
// be had. They are requested by Graphite's own clock: if that was set forward, the points after
// the newest known one exceed the bound of an answer.
func (j *job) read(ctx context.Context) (*answeredRequest, error) {
	q, latest := pointRequest{points: j.lookback}, pointRequest{points: j.ledger.keep}
	if j.begun {
		q.from = j.known - j.ledger.keep + 1
		q.points = max(j.ledger.keep, time.Now().Add(j.shown.ahead).Unix()/j.step-q.from+1)
		if maxPoints := int64(longestLookback / j.cfg.Step); q.points > maxPoints {
			q = pointRequest{points: maxPoints}
		}
	}
	if !j.tooMuch {
		a, err := j.fetchWithRetry(ctx, q)
		j.tooMuch = isTooMuch(err)
		return a, err
	}
	some, err := j.fetchWithRetry(ctx, latest)
	if err != nil {
		return nil, err // fewer points would not help
	}
	j.tooMuch = false
	if all, err := j.fetchWithRetry(ctx, q); err == nil {
		return all, nil
	}
	return some, nil
}

// isTooMuch reports whether a request for fewer points might succeed.
func isTooMuch(err error) bool {
	var why *failure
	return errors.As(err, &why) && (why.reason == timedOut || why.reason == tooLarge || why.reason == wrongStep)
}

// answeredRequest is a reply with its request.
type answeredRequest struct {
	*seriesReply
	pointRequest
}

// retries is how often a request is retried at once after an internal error of Graphite, and
// retryAfter the wait before each. Graphite also answers with an internal error while carbon
// creates a file whose header is not there yet.
const (
	retries    = 2
	retryAfter = 75 * time.Millisecond
)

// fetchWithRetry sends a request, and retries it after an internal error, unless the poll before
// failed as well.
func (j *job) fetchWithRetry(ctx context.Context, q pointRequest) (*answeredRequest, error) {
	for tries := 0; ; tries++ {
		a, err := j.try(ctx, q)
		var why *failure
		if !errors.As(err, &why) || why.reason != badStatus || !why.retryable || j.failures > 0 || tries == retries {
			return a, err
		}
		j.shown.failures[why.reason]++
		if base.Sleep(ctx, retryAfter) != nil {
			return nil, err
		}
	}
}

func (j *job) try(ctx context.Context, q pointRequest) (*answeredRequest, error) {
	from := ago(q.points * j.step)
	if q.from > 0 {
		from = strconv.FormatInt((q.from-1)*j.step, 10) // Graphite leaves out the point at from itself
	}
	j.shown.stats.Polls++
	r, err := j.client.fetch(ctx, j.cfg.form(j.watches, from, j.named), mostPoints(q.points))
	if err != nil {
		return nil, err
	}
	j.shown.stats.LastDuration, j.shown.stats.Series = r.took, int64(len(r.series))
	j.compareClocks(r)
	return &answeredRequest{r, q}, nil
}

// ago returns a time before the present in Graphite's syntax.
func ago(seconds int64) string { return "-" + strconv.FormatInt(seconds, 10) + "s" }

// mostPoints returns an upper bound of the points in a series if that many were requested by our
// clock, which may differ from Graphite's.
func mostPoints(points int64) int64 { return 2*points + 60 }

// tolerated is how far the clocks may differ before that is logged.
const tolerated = 2 * time.Second

// compareClocks records how far Graphite's clock is ahead of ours. Its time is known in whole
// seconds, and was read while the answer was made.
func (j *job) compareClocks(r *seriesReply) {
	j.shown.ahead = 0
	if r.served.IsZero() {
		r.served = r.received.Round(0)
		return
	}
	ahead := r.served.Sub(r.received.Round(0))
	differs := ahead > tolerated || ahead < -tolerated-time.Second-r.took
	if differs {
		j.shown.ahead = ahead
	}
	if differs != j.differs {
		j.differs = differs
		if differs && j.mayLogClock(r.received) {
			j.cfg.Log.Warn("the clock of Graphite's machine differs from this one's; Graphite's is used", "ahead", ahead.Round(time.Second))
		}
	}
}

// clockLog limits the log lines about Graphite's clock, since several servers behind one address
// have a clock each.
var clockLog = loglimit.LineRate{Burst: 1, Every: 10 * time.Second}

func (j *job) mayLogClock(now time.Time) bool {
	_, ok := j.clockLines.Allow(clockLog, now)
	return ok
}

// when returns the start of the step whose counts the point holds.
func (j *job) when(point int64) time.Time { return time.Unix((point-1)*j.step, 0) }

// restart starts over with the hot keys: all points that matter are read again.
func (j *job) restart() {
	j.adopted = append(j.detector.Listed(), j.adopted...)
	j.begun, j.known, j.detector = false, 0, j.newDetector()
	clear(j.ledger.entries)
}
