package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A hot parameter over three instances, from the first request to the last, is found, published
// as documented, and limited everywhere. Nothing else is limited, and it is free again when its
// requests end.
func TestHotParameterIsLimitedOnAllInstancesAndCools(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	f.startAggregator()
	f.checkStory(f.startAPIs(3))
}

// checkStory lets phone become hot, and cool.
func (f *fleet) checkStory(apis []*api) {
	t := f.t
	t.Helper()
	load := f.startLoad(apis)
	limited := load.awaitRefusals(apis)
	since := time.Now()
	checkRefusal(t, f, apis)
	f.checkLayout()
	f.checkList()
	load.calm()
	load.checkLimit(since)

	load.stop()
	mustBeGood(t, load.flows)
	t.Logf("refused on all instances %v after the count reached the threshold", limited)

	// A window of a second has to pass without requests, then it may cool.
	f.awaitCool(4*time.Second, apis)
	if n := f.client.ZCard(t.Context(), f.layout.Hot).Val(); n != 0 {
		t.Errorf("Redis still has %d hot keys after all instances have none", n)
	}
	f.checkEvents()
	for _, a := range apis {
		for range 2 * burst {
			if status, _ := f.get(a.search("phone")); status != http.StatusOK {
				t.Errorf("phone after it has cooled: status %d, want 200", status)
			}
		}
	}
}

// awaitRefusals waits until every instance has refused phone. It returns the time from the
// request that reached the threshold to the last instance's first refusal.
func (l *load) awaitRefusals(apis []*api) time.Duration {
	l.t.Helper()
	var first []time.Time
	within(l.t, patience, "phone refused on all instances", func() bool {
		first = first[:0]
		for _, fl := range l.phones {
			if i := slices.IndexFunc(fl.all(), answer.refused); i >= 0 {
				first = append(first, fl.all()[i].due)
			}
		}
		return len(first) == len(apis)
	})
	var asked []time.Time
	for _, fl := range l.phones {
		for _, s := range fl.all() {
			asked = append(asked, s.due)
		}
	}
	slices.SortFunc(asked, time.Time.Compare)
	late := slices.MaxFunc(first, time.Time.Compare).Sub(asked[threshold-1])
	if late > time.Second {
		l.t.Errorf("phone was first refused on all instances %v after it had reached the threshold, want at most 1s", late)
	}
	return late
}

// checkLimit checks that since then no instance has let more requests of phone through than its
// bucket may.
func (l *load) checkLimit(since time.Time) {
	l.t.Helper()
	now := time.Now()
	for _, fl := range l.phones {
		passed := count(fl.between(since, now), http.StatusOK)
		// Requests that were due before and came later count, too: a second more is ample.
		maxPassed := burst + limit*(now.Sub(since).Seconds()+1)
		if passed == 0 || float64(passed) > maxPassed {
			l.t.Errorf("%s: %d requests passed in %v, want at most %.0f and some", fl.name, passed, now.Sub(since), maxPassed)
		}
	}
}

// checkRefusal checks the answer to a request over the limit.
func checkRefusal(t *testing.T, f *fleet, apis []*api) {
	t.Helper()
	for _, a := range apis {
		within(t, patience, "a request of phone that is refused", func() bool {
			res, err := f.http.Get(a.search("phone"))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusTooManyRequests {
				return false
			}
			if after, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || after != 1 {
				t.Errorf("Retry-After: %q, want 1: a token comes each 100ms", res.Header.Get("Retry-After"))
			}
			if kind := res.Header.Get("Content-Type"); kind != "application/problem+json" {
				t.Errorf("Content-Type: %q, want application/problem+json", kind)
			}
			var problem struct {
				Status   int
				Violated []string `json:"violated-policies"`
			}
			if err := json.Unmarshal(body, &problem); err != nil || problem.Status != 429 || !slices.Equal(problem.Violated, []string{"search-terms"}) {
				t.Errorf("problem %s: want status 429 and the rule's id (%v)", body, err)
			}
			if strings.Contains(string(body), "phone") {
				t.Errorf("problem %s: tells the parameter's value", body)
			}
			return true
		})
	}
}

// checkList checks the hot keys that the list command prints.
func (f *fleet) checkList() {
	f.t.Helper()
	var keys []struct {
		Key, Rule, Limit, Mode string
		Rate                   float64
		Since, Until           time.Time
	}
	f.operate(&keys, "list")
	if len(keys) != 1 || keys[0].Rule+" "+keys[0].Key != phone || keys[0].Limit != "10/s" || keys[0].Mode != "limit" ||
		keys[0].Rate < 0.8*threshold || !keys[0].Until.After(keys[0].Since) {
		f.t.Errorf("hotparam list: %+v, want %q alone, limited to 10/s", keys, phone)
	}
}

// Other programs' counts work: the lines that README sends with printf and nc make a key hot,
// with no meta line and one count to a packet.
func TestPlainStatsDLinesMakeAKeyHot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon := f.startAggregator()
	apis := f.startAPIs(1)
	const line = "shop.search-terms.hot_param.GET%20/search?q=phone:1|c"
	readme := testenv.ReadFile(t, filepath.Join("..", "..", "README.md"))
	if command := "printf '" + strings.ReplaceAll(line, "%", "%%") + "' | nc"; !strings.Contains(readme, command) {
		t.Errorf("README does not show %q", command)
	}
	f.sendLines(line, threshold)
	f.awaitHot(2*time.Second, apis, phone)
	// The instance sends its total of the hot key, which is 0, with its next four flushes.
	if n := daemon.metric("hotparam_statsd_counts_total"); n < threshold || n > threshold+4 {
		t.Errorf("hotparam_statsd_counts_total = %v, want %d and up to 4 totals", n, threshold)
	}
	if passed, _ := f.askAll(apis, burst+5, "/search?q=phone"); passed[0] == burst+5 {
		t.Errorf("none of %d requests at once was refused, with a burst of %d", burst+5, burst)
	}
	// One line can also hold all counts.
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=boat:150|c", 1)
	f.awaitHot(2*time.Second, apis, searchKey("boat"))
}
