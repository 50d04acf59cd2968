package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// graphiteFleet is a fleet whose counts go the long way: to a StatsD of the original
// make, from there to Graphite, and from there, by a job each second, to Redis.
type graphiteFleet struct {
	*fleet
	graphite *real.GraphiteServer
	counter  *real.StatsDServer
	settings string // of section graphite
}

// newGraphiteFleet starts all that is not ours.
func newGraphiteFleet(t *testing.T, rules string) *graphiteFleet {
	t.Helper()
	return newGraphiteFleetOf(t, rules, real.StatsDOptions{})
}

// newGraphiteFleetOf has a StatsD that is set otherwise.
func newGraphiteFleetOf(t *testing.T, rules string, options real.StatsDOptions) *graphiteFleet {
	t.Helper()
	f := &graphiteFleet{fleet: newFleet(t, quickCommands(t), rules)}
	f.owner = "graphite"
	f.graphite = real.Graphite(t)
	options.Carbon = f.graphite.Carbon()
	f.counter = real.StatsD(t, options)
	f.settings = fmt.Sprintf("{url: %q}", f.graphite.URL())
	return f
}

// config writes a configuration file for all processes.
func (f *graphiteFleet) config() string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf(`namespace: shop
aggregator: {source: graphite, redis: "%s", http: "127.0.0.1:0"}
statsd: {addresses: ["%s"]}
graphite: %s
rules:%s`, f.redisURL, f.counter.Addr(), f.settings, f.rules)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *graphiteFleet) startAggregator() *daemon {
	f.t.Helper()
	p := f.start(f.bin.hotparam, "aggregator", "--config", f.config())
	return &daemon{p, f.fleet, "http://" + p.WaitFor(`aggregator is up.* http=(\S+)`)[1]}
}

func (f *graphiteFleet) startAPIs(n int) []*api {
	f.t.Helper()
	apis := make([]*api, n)
	for i := range apis {
		p := f.start(f.bin.api, "--listen", "127.0.0.1:0", "--config", f.config())
		apis[i] = &api{p, f.fleet, "http://" + p.WaitFor(`api is up.* address=(\S+)`)[1]}
	}
	return apis
}

// sum is what Graphite has of all series that the pattern names.
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

// browsers ask for many terms, each seldom.
type browsers struct {
	asked, failed atomic.Int64
	stop          func()
}

// browse asks all instances in turn for one of so many terms after the other.
func (f *fleet) browse(apis []*api, terms, perSecond int) *browsers {
	const clients = 4
	b := &browsers{}
	ctx, cancel := context.WithCancel(context.Background())
	var next atomic.Int64
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			tick := time.NewTicker(clients * time.Second / time.Duration(perSecond))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				n := int(next.Add(1))
				status, err := request(f.http, apis[n%len(apis)].search(fmt.Sprintf("term%d", n%terms)))
				b.asked.Add(1)
				if err != nil || status != http.StatusOK {
					b.failed.Add(1)
				}
			}
		})
	}
	b.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	f.t.Cleanup(b.stop)
	return b
}

// rush is a flash crowd: one term, at all instances, each of which sees less of it
// than the threshold.
type rush struct {
	flows []*flow
	stop  func()
}

const rushRate = 270 // per second over all instances

func (f *fleet) rush(apis []*api, term string) *rush {
	r := &rush{}
	for i, a := range apis {
		r.flows = append(r.flows, &flow{
			name: fmt.Sprintf("%s at instance %d", term, i), url: a.search(term), perSecond: rushRate / len(apis), hot: true,
		})
	}
	r.stop = f.begin(r.flows...)
	return r
}

// limited is how long after its first request each instance had refused the rush;
// false: some have not yet.
func (r *rush) limited() (time.Duration, bool) {
	var began, last time.Time
	for _, fl := range r.flows {
		all := fl.all()
		i := slices.IndexFunc(all, refused)
		if i < 0 {
			return 0, false
		}
		if began.IsZero() || all[0].at.Before(began) {
			began = all[0].at
		}
		if at := all[i].at.Add(all[i].took); at.After(last) {
			last = at
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
