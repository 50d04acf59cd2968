package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lens is a proxy for graphite-web that can answer itself.
type lens struct {
	url  string
	bent atomic.Pointer[http.HandlerFunc] // nil: it is clear
}

func newLens(t *testing.T, graphite string) *lens {
	t.Helper()
	target, err := url.Parse(graphite)
	if err != nil {
		t.Fatal(err)
	}
	clear := httputil.NewSingleHostReverseProxy(target)
	l := &lens{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bent := l.bent.Load(); bent != nil {
			_, _ = io.Copy(io.Discard, r.Body) // else the server would not notice that the client has gone
			(*bent)(w, r)
			return
		}
		clear.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *lens) bend(answer http.HandlerFunc) { l.bent.Store(&answer) }
func (l *lens) clear()                       { l.bent.Store(nil) }

func saying(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

const boatSeries = "stats_counts.shop.search-terms.hot_param.GET_20_2Fsearch_3Fq=boat"

// huge answers with a series far over the threshold for a term without requests, with ten times
// as many points as the seconds that were asked for.
func huge(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const points = 36_000
	now := time.Now().Unix()
	_, _ = fmt.Fprintf(w, `[{"target": "statsd.numStats", "datapoints": [[3.0, %d]]}, {"target": %q, "datapoints": [`, now, boatSeries)
	for i := range points {
		comma := ","
		if i == points-1 {
			comma = "]}]"
		}
		if _, err := fmt.Fprintf(w, "[100000.0, %d]%s", now-points+int64(i)+1, comma); err != nil {
			return // the client has had enough
		}
	}
}

// badAnswers are the kinds of bad answers. Each is logged once.
var badAnswers = []struct {
	name   string
	answer http.HandlerFunc
}{
	{"late", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{"wrong JSON", saying(200, `[{"target": "`+boatSeries+`", "datapoints": [[1000000.0, `)},
	{"500", saying(500, "Traceback (most recent call last): …")},
	{"an empty series", saying(200, `[{"target": "`+boatSeries+`", "datapoints": []}]`)},
	{"a huge series", huge},
}

// While Graphite answers badly, hot keys stay hot, nothing is published by mistake, and the
// failure is counted and logged once. When Graphite recovers, everything works again without
// help.
func TestGraphiteAnswersBadly(t *testing.T) {
	t.Parallel()
	f := newGraphiteFleet(t, searchRule)
	l := newLens(t, f.graphite.URL())
	f.settings = fmt.Sprintf("{url: %q, timeout: 2s}", l.url)
	daemon, apis := f.startAggregator(), f.startAPIs(3)
	within(t, patience, "the aggregator ready", daemon.ready)
	f.rush(apis, "phone")
	f.awaitHot(patience, apis, phone)
	warning := regexp.MustCompile(`level=WARN msg="Graphite`)
	warnings := func() int { return len(warning.FindAllString(daemon.Stderr(), -1)) }
	for _, fault := range badAnswers {
		before := warnings()
		l.bend(fault.answer)
		within(t, patience, "not ready: "+fault.name, func() bool {
			f.checkHot(fault.name, phone)
			time.Sleep(50 * time.Millisecond)
			return !daemon.ready()
		})
		within(t, patience, "a warning: "+fault.name, func() bool { return warnings() > before })
		l.clear()
		well := within(t, patience, "ready again after: "+fault.name, daemon.ready)
		t.Logf("%s: ready %v after it was over", fault.name, well)
		if n := warnings() - before; n != 1 {
			t.Errorf("%s: the log warns %d times, want once", fault.name, n)
		}
		f.checkHot("after "+fault.name, phone)
	}
	_, metrics := f.get(daemon.url + "/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "hotparam_graphite_failures_total") {
			t.Log(strings.TrimSpace(line))
		}
	}
	f.awaitLimited(f.rush(apis, "tree"), "another term")
}

// The real StatsD, carbon and graphite-web die and come back. No request fails. While counts are
// unavailable no key leaves the hot set, and afterwards everything works again without help.
func TestGraphiteDies(t *testing.T) {
	t.Parallel()
	f := newGraphiteFleet(t, searchRule)
	f.settings = fmt.Sprintf("{url: %q, timeout: 1s}", f.graphite.URL())
	daemon, apis := f.startAggregator(), f.startAPIs(3)
	within(t, patience, "the aggregator ready", daemon.ready)
	phones := f.rush(apis, "phone")
	f.awaitHot(patience, apis, phone)
	for i, part := range []struct {
		name        string
		kill, start func()
	}{
		{"graphite-web", f.graphite.KillWeb, f.graphite.StartWeb},
		{"carbon", f.graphite.KillCarbon, f.graphite.StartCarbon},
		{"StatsD", f.counter.Kill, f.counter.Restart},
	} {
		part.kill()
		within(t, patience, "not ready without "+part.name, func() bool { return !daemon.ready() })
		f.checkHot("without "+part.name, phone)
		part.start()
		well := within(t, patience, "ready again with "+part.name, daemon.ready)
		other := f.rush(apis, fmt.Sprintf("tree%d", i))
		f.awaitLimited(other, "another term")
		other.stop()
		within(t, patience, "phone alone hot again", func() bool {
			return slices.Equal(f.hotInRedis(), []string{phone})
		})
		t.Logf("%s: ready %v after it was back", part.name, well)
	}
	phones.stop()
	mustBeGood(t, phones.flows)
}
