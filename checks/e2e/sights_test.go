package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// sight is the published set at one moment, or the set that one instance enforced. Times are
// since the crowd's beginning.
type sight struct {
	asked    time.Duration // not before
	who      string        // "Redis", or an instance
	hot      map[string]int64
	version  string
	owners   map[string]int64
	captured time.Duration // not after
}

// happening is a change of one key, as read from the stream.
type happening struct {
	since  time.Duration
	member string
	hot    bool
}

// sights holds observations of the hot set over a time: in Redis, in its stream of changes and at
// the instances.
type sights struct {
	t      *testing.T
	crowd  *crowd
	client redis.UniversalClient
	layout published.Layout
	stop   func()

	mu     sync.Mutex
	seen   []sight
	events []happening
	lastID string // id of the last change
	blind  int    // looks at Redis that failed
}

// watchHotSet looks at Redis and the instances until stop is called or the test ends.
func (c *crowd) watchHotSet(f *fleet, apis []*api) *sights {
	s := &sights{t: c.t, crowd: c, client: f.client, layout: f.layout, lastID: "-"}
	work := []func(context.Context){func(ctx context.Context) { testenv.Every(ctx, 50*time.Millisecond, func(int) { s.readRedis(ctx) }) }}
	for i, a := range apis {
		work = append(work, func(ctx context.Context) {
			testenv.Every(ctx, 200*time.Millisecond, func(int) { s.readInstance(ctx, fmt.Sprintf("instance %d", i), a) })
		})
	}
	s.stop = beside(c.t, work...)
	return s
}

// readRedis looks at Redis, all in one transaction.
func (s *sights) readRedis(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	var (
		hot          *redis.StringSliceCmd
		info, owners *redis.MapStringStringCmd
		version      *redis.StringCmd
		beat         *redis.IntCmd
		clock        *redis.TimeCmd
		events       *redis.XMessageSliceCmd
	)
	from := s.lastID
	if from != "-" {
		from = "(" + from
	}
	at := time.Since(s.crowd.began)
	_, err := s.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		hot = tx.ZRange(ctx, s.layout.Hot, 0, -1)
		info = tx.HGetAll(ctx, s.layout.Info)
		owners = tx.HGetAll(ctx, s.layout.Owners)
		beat = tx.Exists(ctx, s.layout.Beat)
		clock = tx.Time(ctx)
		events = tx.XRange(ctx, s.layout.Events, from, "+")
		version = tx.Get(ctx, s.layout.Version)
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.blind++
		return
	}
	seen := sight{asked: at, who: "Redis", hot: make(map[string]int64), version: version.Val(), owners: epochs(owners.Val())}
	for _, member := range hot.Val() {
		// An expired entry is not in force, nor is any entry without a heartbeat.
		h, err := published.ParseInfo([]byte(info.Val()[member]))
		if err == nil && h.Until.After(clock.Val()) && beat.Val() == 1 {
			seen.hot[member] = h.Low
		}
	}
	seen.captured = time.Since(s.crowd.began)
	s.seen = append(s.seen, seen)
	for _, e := range events.Val() {
		s.lastID = e.ID
		s.recordEvent(e)
	}
}

// epochs returns the owners' epochs from the fields of Redis.
func epochs(owners map[string]string) map[string]int64 {
	all := make(map[string]int64)
	for field, value := range owners {
		if epoch, err := strconv.ParseInt(value, 10, 64); err == nil && !strings.Contains(field, ":") {
			all[field] = epoch
		}
	}
	return all
}

func (s *sights) recordEvent(e redis.XMessage) {
	text, _ := e.Values["change"].(string)
	change, err := published.ParsePush([]byte(text))
	if err != nil {
		s.t.Errorf("event %v: %v", e.Values, err)
		return
	}
	at := change.At.Sub(s.crowd.began) // Redis is on this machine, so its clock is ours
	for _, h := range change.Hot {
		s.events = append(s.events, happening{at, h.Key.String(), true})
	}
	for _, key := range change.Cool {
		s.events = append(s.events, happening{at, key.String(), false})
	}
}

// readInstance records the keys that an instance enforces.
func (s *sights) readInstance(ctx context.Context, who string, a *api) {
	at := time.Since(s.crowd.began)
	in, err := a.fetchState(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.t.Errorf("%s: /debug/hot: %v", who, err)
		return
	}
	seen := sight{asked: at, who: who, hot: make(map[string]int64), version: in.Watcher.Version, captured: time.Since(s.crowd.began)}
	for _, h := range in.Hot {
		seen.hot[h.Key.String()] = h.Low
	}
	s.seen = append(s.seen, seen)
}

// Times that a change may take without a fault.
const (
	enterWithin = 1200 * time.Millisecond // and half a second by a poll, where a push was lost
	coolWithin  = 4 * time.Second         // the window, the hold and the watermark

	judgedWithin = 6 * time.Second // longest time from a window's end to its decision: the grace, and the transport
)

// checkSights compares all observations since a time with the truth.
func (s *sights) checkSights(since time.Duration, faults []fault) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	truths := s.crowd.truths()
	kinds := make(map[string]kind)
	for _, x := range s.crowd.terms {
		kinds[x.member] = x.kind
	}
	complaints := complaints{t: s.t, counts: make(map[string]int)}
	type wrong struct {
		at   time.Duration
		what string
	}
	last := make([]wrong, len(faults))
	for i := range last {
		last[i] = wrong{faults[i].began, "never wrong"}
	}
	for i := range s.seen {
		seen := &s.seen[i]
		if seen.asked < since {
			continue
		}
		during := faultAt(faults, seen.asked)
		excused := during >= 0 && seen.asked < faults[during].deadline
		for member, low := range seen.hot {
			tr := truths[member]
			switch {
			case tr == nil || kinds[member] == cold:
				complaints.report("never hot", "%v, %s: %q is hot, which it never was", seen.asked, seen.who, member)
			case kinds[member] == tidal && tr.coolSince(seen.asked, coolWithin):
				if during >= 0 && seen.asked > last[during].at {
					last[during] = wrong{seen.asked, member + " still hot"}
				}
				if !excused {
					complaints.report("still hot", "%v, %s: %q is hot (low %d), and has not been for %v", seen.asked, seen.who, member, low, coolWithin)
				}
			}
			if seen.who == "Redis" && tr != nil {
				s.judgeLow(&complaints, tr, seen, member, low)
			}
		}
		for member, tr := range truths {
			if _, hot := seen.hot[member]; hot || kinds[member] == cold || !tr.hotSince(seen.asked, enterWithin) {
				continue
			}
			if during >= 0 && seen.asked > last[during].at {
				last[during] = wrong{seen.asked, member + " not hot"}
			}
			away := during >= 0 && faults[during].name == redisFailsOver && seen.asked-faults[during].began > holdsWithoutRedis
			if !excused || kinds[member] == steady && !away {
				complaints.report("not hot", "%v, %s: %q is not hot, and has been for %v", seen.asked, seen.who, member, enterWithin)
			}
		}
	}
	for _, e := range s.events {
		tr, during := truths[e.member], faultAt(faults, e.since)
		switch {
		case e.since < since || tr == nil:
		case !e.hot && (kinds[e.member] == steady && tr.staysHot(e.since, judgedWithin) || tr.hotSince(e.since, time.Second)):
			complaints.report("cooled", "%v: %q cooled, and was hot", e.since, e.member)
		case during >= 0 && e.since < faults[during].deadline: // delayed counts arrive now
		case e.hot && tr.coolSince(e.since, coolWithin):
			complaints.report("became hot", "%v: %q became hot, and had not been for %v", e.since, e.member, coolWithin)
		}
	}
	s.judgeVersions(&complaints, since, faults)
	complaints.reportCounts()
	for i, f := range faults {
		s.t.Logf("%-25s at %6.2fs: right after %v (%s), mendable after %v", f.name, f.began.Seconds(),
			(last[i].at - f.began).Round(10*time.Millisecond), last[i].what, (f.mended - f.began).Round(10*time.Millisecond))
	}
	s.t.Logf("%d looks, %d of them failed at Redis; %d changes", len(s.seen), s.blind, len(s.events))
}

// faultAt returns the index of the last fault before a time, or -1 if there is none yet.
func faultAt(faults []fault, at time.Duration) int {
	for i := len(faults) - 1; i >= 0; i-- {
		if faults[i].began <= at {
			return i
		}
	}
	return -1
}

// judgeLow checks that no count exceeds the requests in any window that it can belong to. That
// window ended at most as long ago as unrefreshed counts last. A window's panes may hold a flush
// that came after its end.
func (s *sights) judgeLow(complaints *complaints, tr *truth, seen *sight, member string, low int64) {
	const lateFlush = 150 * time.Millisecond
	longest := int64(0)
	for end := seen.captured; end > seen.captured-entryLasts && longest < low; end -= 50 * time.Millisecond {
		_, most := tr.in(end-time.Second-lateFlush, end)
		longest = max(longest, most)
	}
	if low > longest {
		complaints.report("low", "%v: low of %q is %d, and at most %d were asked for in a window", seen.asked, member, low, longest)
	}
}

// entryLasts is the longest time that an entry stays in Redis, its last count with it.
const entryLasts = 15 * time.Second

// judgeVersions checks that epochs and versions only rise, except for a new history where Redis
// may have lost the end of the old one.
func (s *sights) judgeVersions(complaints *complaints, since time.Duration, faults []fault) {
	failover := slices.IndexFunc(faults, func(f fault) bool { return f.name == redisFailsOver })
	var before *sight
	for i := range s.seen {
		seen := &s.seen[i]
		if seen.who != "Redis" || seen.asked < since {
			continue
		}
		if before != nil && (failover < 0 || !between(faults[failover], before, seen)) {
			was, errWas := published.ParseVersion(before.version)
			actual, actualErr := published.ParseVersion(seen.version)
			if errWas != nil || actualErr != nil || actual.Run != was.Run || actual.N < was.N {
				complaints.report("version", "%v: version %q after %q", seen.asked, seen.version, before.version)
			}
			for owner, epoch := range before.owners {
				if seen.owners[owner] < epoch {
					complaints.report("epoch", "%v: epoch %d of %s after %d", seen.asked, seen.owners[owner], owner, epoch)
				}
			}
		}
		before = seen
	}
}

// between reports whether a fault may have an effect between two sights: publishers begin a new
// history some time after it.
func between(f fault, a, b *sight) bool { return b.asked >= f.began && a.asked <= f.deadline }

// holdsWithoutRedis is how long all hot keys stay hot while Redis is unavailable. Entries last
// for 10 s after their last renewal. A failover takes two or three seconds, and over ten if the
// sentinels' first vote is split.
const holdsWithoutRedis = 8 * time.Second

// redisFailsOver names the fault after which versions may restart.
const redisFailsOver = "Redis fails over"

// complaints reports the first few of each kind, and counts all.
type complaints struct {
	t      *testing.T
	counts map[string]int
}

func (c *complaints) report(kind, format string, args ...any) {
	c.t.Helper()
	if c.counts[kind]++; c.counts[kind] <= 5 {
		c.t.Errorf(format, args...)
	}
}

func (c *complaints) reportCounts() {
	c.t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(c.counts)) {
		c.t.Errorf("%s: %d times in all", kind, c.counts[kind])
	}
}
