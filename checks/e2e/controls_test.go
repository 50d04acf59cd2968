package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// operate runs an operator's command and decodes its JSON output into into.
func (f *fleet) operate(into any, args ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, f.bin.hotparam, append(args, "--json", "--namespace", "shop", "--redis", f.redisURL)...).Output()
	if err != nil {
		f.t.Fatalf("hotparam %v: %v", args, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		f.t.Fatalf("hotparam %v: %v: %s", args, err, out)
	}
}

// control runs a command that sets or releases a control.
func (f *fleet) control(args ...string) {
	f.t.Helper()
	var said struct{ Namespace string }
	if f.operate(&said, append(args, "--yes")...); said.Namespace != "shop" {
		f.t.Errorf("%v acted in %q", args, said.Namespace)
	}
}

// awaitStatus waits until a request has that status at every instance.
func (f *fleet) awaitStatus(limit time.Duration, apis []*api, q string, want int) time.Duration {
	f.t.Helper()
	return within(f.t, limit, http.StatusText(want)+" for "+q+" at all instances", func() bool {
		for _, a := range apis {
			if status, _ := f.get(a.search(q)); status != want {
				return false
			}
		}
		return true
	})
}

// awaitListed waits until list --instances has each instance and the aggregator by their
// heartbeats, all with one version of the rules.
func (f *fleet) awaitListed(apis []*api) {
	f.t.Helper()
	within(f.t, patience, "list --instances has them all", func() bool {
		var members []struct {
			Role         string
			RulesVersion string `json:"rules_version"`
		}
		f.operate(&members, "list", "--instances")
		roles := make(map[string]int)
		for _, m := range members {
			if m.RulesVersion != "" && m.RulesVersion == members[0].RulesVersion {
				roles[m.Role]++
			}
		}
		return roles["instance"] == len(apis) && roles["aggregator"] == 1
	})
}

// All instances obey a control within a second, whether its key is hot or not. No other key is
// affected. Controls last while Redis is unavailable, and over restarts of aggregators and instances.
// They expire when they are due, and can be released while no aggregator runs.
func TestControls(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), searchRule)
	daemon := f.startAggregator()
	apis := f.startAPIs(2)
	within(t, patience, "the aggregator ready", daemon.ready)
	f.awaitListed(apis)
	const obeyed = time.Second // without the time of the command
	f.control("block", searchKey("blocked"), "--for", "10m", "--why", "scraper")
	f.awaitStatus(obeyed, apis, "blocked", http.StatusForbidden)
	f.awaitStatus(obeyed, apis, "phone", http.StatusOK)
	f.control("pin", searchKey("pinned"), "--for", "10m")
	f.control("pin", searchKey("released"), "--for", "10m")
	f.control("allow", searchKey("allowed"), "--for", "10m")
	f.awaitStatus(obeyed, apis, "pinned", http.StatusTooManyRequests)
	hold := func(when string) {
		t.Helper()
		f.awaitStatus(obeyed, apis, "blocked", http.StatusForbidden)
		f.awaitStatus(obeyed, apis, "pinned", http.StatusTooManyRequests)
		within(t, patience, when+": a key that becomes hot and is allowed passes", func() bool {
			for range 2 * threshold {
				if status, _ := f.get(apis[0].search("allowed")); status != http.StatusOK {
					return false
				}
			}
			return true
		})
	}
	hold("before")

	daemon.Kill()
	f.control("block", searchKey("short"), "--for", "2s")
	f.awaitStatus(obeyed, apis, "short", http.StatusForbidden)
	hold("without an aggregator")
	f.control("release", searchKey("released"))
	f.awaitStatus(obeyed, apis, "released", http.StatusOK)
	f.awaitStatus(2*time.Second+obeyed, apis, "short", http.StatusOK)

	daemon = f.startAggregator()
	within(t, patience, "the aggregator ready again", daemon.ready)
	hold("behind a restart of the aggregator")
	f.awaitStatus(obeyed, apis, "released", http.StatusOK)

	apis[1].Kill()
	apis[1] = f.startAPI()
	hold("behind a restart of an instance")
	var listed []struct{ Key, Action, Why string }
	f.operate(&listed, "list", "--controls")
	scraper := func(c struct{ Key, Action, Why string }) bool {
		return c.Key == "GET /search?q=blocked" && c.Action == "block" && c.Why == "scraper"
	}
	if len(listed) != 3 || !slices.ContainsFunc(listed, scraper) {
		t.Errorf("list --controls says %+v", listed)
	}
}
