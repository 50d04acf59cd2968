package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/wire"
)

const (
	crowdTerms = 2000

	allSearches = "stats_counts.shop.search-terms.hot_param.*"
	phoneSeries = "stats_counts.shop.search-terms.hot_param.GET_20_2Fsearch_3Fq=phone"
)

// A flash crowd on one value among 2,000, by StatsD, Graphite and a job each second: the value is
// limited, nothing else is, and each request is one count in Graphite. It runs three times, or
// ten, each time from a clean start and at another part of the second. It measures time, and
// StatsD drops packets when it is too slow: no other test may run in parallel.
func TestFlashCrowdByGraphite(t *testing.T) {
	const most, median = 5 * time.Second, 3 * time.Second
	crowds := 3
	if atLength() {
		crowds = 10
	}
	took := make([]time.Duration, crowds)
	for i := range crowds {
		t.Run(fmt.Sprint(i), func(t *testing.T) { took[i] = flashCrowd(t, time.Duration(i)*time.Second/time.Duration(crowds)) })
	}
	if slices.Contains(took, 0) {
		return // one has failed, or was skipped
	}
	slices.Sort(took)
	t.Logf("limited after %v in the median, %v at most", took[crowds/2], took[crowds-1])
	if took[crowds-1] > most {
		t.Errorf("limited after %v, want at most %v", took[crowds-1], most)
	}
	if atLength() && took[crowds/2] > median { // of three it would be one crowd's bad luck
		t.Errorf("limited after %v in the median, want at most %v", took[crowds/2], median)
	}
}

// flashCrowd starts a crowd after the other traffic has run for the given time. It returns how
// long it took until phone was limited on all instances.
func flashCrowd(t *testing.T, after time.Duration) time.Duration {
	t.Helper()
	f := newGraphiteFleet(t, searchRule)
	daemon, apis := f.startAggregator(), f.startAPIs(3)
	others := f.browse(apis, crowdTerms, 500)
	time.Sleep(time.Second + after)
	rush := f.rush(apis, "phone")
	limited := f.awaitLimited(rush, "phone")
	t.Logf("limited on all instances after %v", limited)
	f.checkHot("limited", phone)
	within(t, patience, "all 2,000 terms asked for", func() bool { return others.asked() >= crowdTerms })
	others.stop()
	rush.stop()
	mustBeGood(t, others.flows)
	f.checkConserved(daemon, apis, others, rush)
	return limited
}

// checkConserved checks that each request is one count at the instances and in Graphite. The
// daemon must have one count of each request for the series that the job reads.
func (f *graphiteFleet) checkConserved(daemon *daemon, apis []*api, others, rush *rush) {
	t := f.t
	t.Helper()
	asked := others.asked() + rush.asked()
	sent := int64(0)
	within(t, patience, "all requests sent to StatsD", func() bool {
		sent = 0
		for _, a := range apis {
			in := a.state()
			if n := in.Collector.Dropped.Sum() + in.Collector.Aged; n > 0 {
				t.Fatalf("%d counts were dropped: %+v", n, in.Collector)
			}
			sent += in.Collector.Counts
		}
		return sent >= asked
	})
	kept := int64(0)
	within(t, patience, "all counts in Graphite", func() bool {
		kept = f.sum(allSearches)
		return kept >= asked
	})
	if sent != asked || kept != asked {
		t.Errorf("%d requests, %d sent as counts, %d in Graphite", asked, sent, kept)
	}
	if total := f.sum(phoneSeries); total != rush.asked() {
		t.Errorf("phone was asked for %d times, Graphite has %d", rush.asked(), total)
	}
	within(t, patience, "all counts of phone at the daemon", func() bool {
		return int64(daemon.metric("hotparam_graphite_counted_total")) >= rush.asked()
	})
	if n := int64(daemon.metric("hotparam_graphite_counted_total")); n != rush.asked() {
		t.Errorf("the daemon counted %d, want the %d requests of phone alone", n, rush.asked())
	}
}

// A key becomes hot, is listed as documented, and cools when its requests end. A StatsD whose
// flush is delayed by a second and a half leaves seconds without a count, in which a key may
// cool: no other test may run in parallel.
func TestHotParameterByGraphiteCools(t *testing.T) {
	f := newGraphiteFleet(t, searchRule)
	daemon, apis := f.startAggregator(), f.startAPIs(3)
	within(t, patience, "the aggregator ready", daemon.ready)
	rush := f.rush(apis, "phone")
	f.awaitHot(patience, apis, phone)
	f.checkList()
	time.Sleep(2 * time.Second)
	f.checkHot("after 2s more, demand lasts", phone)
	rush.stop()
	f.awaitCool(patience, apis)
	f.checkEvents()
	for _, a := range apis {
		if status, _ := f.get(a.search("phone")); status != http.StatusOK {
			t.Errorf("phone after it has cooled: status %d, want 200", status)
		}
	}
	f.checkLongKey(apis)
}

// Under the other names that StatsD has for a count, a key is hot by the same counts.
func TestGraphiteNames(t *testing.T) {
	t.Parallel()
	for _, names := range []struct {
		name, settings string
		options        real.StatsDOptions
	}{
		{"counts without legacyNamespace", `series: "stats.counters.{name}.count"`, real.StatsDOptions{Modern: true}},
		{"rates with legacyNamespace", `series: "stats.{name}", rate: true`, real.StatsDOptions{}},
	} {
		t.Run(names.name, func(t *testing.T) {
			f := newGraphiteFleetOf(t, searchRule, names.options)
			f.settings = fmt.Sprintf("{url: %q, %s}", f.graphite.URL(), names.settings)
			daemon, apis := f.startAggregator(), f.startAPIs(3)
			within(t, patience, "the aggregator ready", daemon.ready)
			f.rush(apis, "phone")
			f.awaitHot(patience, apis, phone)
			f.checkList()
			if n := daemon.metric(`hotparam_graphite_rejected_total{reason="foreign"}`); n != 0 {
				t.Errorf("%v series were foreign", n)
			}
		})
	}
}

// checkLongKey sends a rush for a term of arbitrary bytes, longer than Graphite's names. It is
// limited by its cut name, and terms with the same beginning are not.
func (f *graphiteFleet) checkLongKey(apis []*api) {
	t := f.t
	t.Helper()
	term := strings.Repeat("%E6%97%A5%00%26", 40)
	f.awaitLimited(f.rush(apis, term+"1"), "a long term")
	hot := f.hotInRedis()
	if len(hot) != 1 {
		t.Fatalf("hot in Redis: %q, want the long term alone", hot)
	}
	text := strings.TrimPrefix(hot[0], "search-terms ")
	name := wire.Strict.Append(nil, []byte(text))
	if !regexp.MustCompile(`^GET /search\?q=%E6%97%A5%00%26.*~[0-9a-f]{32}$`).MatchString(text) || len(name) > wire.Strict.Limit() {
		t.Errorf("hot in Redis: %q, want the term, cut to what Graphite has room for, and its hash", hot)
	}
	for _, a := range apis {
		if status, _ := f.get(a.search(term + "2")); status != http.StatusOK {
			t.Errorf("another long term: status %d, want 200", status)
		}
	}
}
