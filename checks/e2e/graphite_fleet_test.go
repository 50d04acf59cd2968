package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// graphiteFleet is a fleet whose counts travel by the original StatsD to Graphite, and from
// there, by a job each second, to Redis.
type graphiteFleet struct {
	*fleet
	graphite *real.GraphiteServer
	counter  *real.StatsDServer
	settings string // content of section graphite
}

// newGraphiteFleet starts a Redis, Graphite and StatsD, and returns a fleet on them.
func newGraphiteFleet(t *testing.T, rules string) *graphiteFleet {
	t.Helper()
	return newGraphiteFleetOf(t, rules, real.StatsDOptions{})
}

// newGraphiteFleetOf is like newGraphiteFleet, with options for StatsD.
func newGraphiteFleetOf(t *testing.T, rules string, options real.StatsDOptions) *graphiteFleet {
	t.Helper()
	f := &graphiteFleet{fleet: newFleet(t, quickCommands(t), rules)}
	f.owner = "graphite"
	f.graphite = real.Graphite(t)
	options.Carbon = f.graphite.Carbon()
	f.counter = real.StatsD(t, options)
	f.settings = fmt.Sprintf("{url: %q}", f.graphite.URL())
	f.sections = func() string {
		return fmt.Sprintf(`aggregator: {source: graphite, redis: %q, http: "127.0.0.1:0"}
statsd: {addresses: [%q]}
graphite: %s`, f.redisURL, f.counter.Addr(), f.settings)
	}
	return f
}

// checkHot checks that a key alone is hot in Redis.
func (f *graphiteFleet) checkHot(when, member string) {
	f.t.Helper()
	if hot := f.hotInRedis(); !slices.Equal(hot, []string{member}) {
		f.t.Errorf("%s: hot in Redis: %q, want %q alone", when, hot, member)
	}
}

func (f *graphiteFleet) hotInRedis() []string {
	return f.client.ZRange(f.t.Context(), f.layout.Hot, 0, -1).Val()
}

// sum returns Graphite's sum over all series that match the pattern.
func (f *graphiteFleet) sum(pattern string) int64 {
	f.t.Helper()
	total := 0.0
	for _, series := range f.graphite.Render(pattern, 10*time.Minute) {
		for _, p := range series.Points {
			total += p.Value
		}
	}
	return int64(total + 0.5)
}

// rush is a flash crowd, or clients that request many terms.
type rush struct {
	flows []*flow
	stop  func()
}

const rushRate = 270 // per second over all instances

// rush requests one term at all instances. Each sees less of it than the threshold.
func (f *fleet) rush(apis []*api, term string) *rush {
	r := &rush{flows: flowsAt(apis, "/search?q="+term, rushRate, mayBeLimited)}
	r.stop = f.beginFlows(r.flows...)
	return r
}

// browse requests so many terms, each of them rarely.
func (f *fleet) browse(apis []*api, terms, perSecond int) *rush {
	const clients = 4
	r := &rush{}
	for i := range clients {
		r.flows = append(r.flows, &flow{
			name: "other terms", url: apis[i%len(apis)].search(fmt.Sprintf("term%d-", i)), values: terms / clients, perSecond: perSecond / clients,
		})
	}
	r.stop = f.beginFlows(r.flows...)
	return r
}

// awaitLimited waits until every instance has refused the rush, and returns the time from the first
// request until then.
func (f *graphiteFleet) awaitLimited(r *rush, what string) (took time.Duration) {
	f.t.Helper()
	within(f.t, patience, what+" refused on all instances", func() (ok bool) {
		took, ok = r.limited()
		return ok
	})
	return took
}

// limited returns the time from the first request until every instance had refused the rush. It
// returns false if some instance has not refused it yet.
func (r *rush) limited() (time.Duration, bool) {
	var began, last time.Time
	for _, fl := range r.flows {
		all := fl.all()
		i := slices.IndexFunc(all, answer.refused)
		if i < 0 {
			return 0, false
		}
		if began.IsZero() || all[0].due.Before(began) {
			began = all[0].due
		}
		if got := all[i].got; got.After(last) {
			last = got
		}
	}
	return last.Sub(began), true
}

func (r *rush) asked() int64 {
	n := 0
	for _, fl := range r.flows {
		n += len(fl.all())
	}
	return int64(n)
}
