package attach

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
)

const (
	nobody  = "nobody publishes hot keys for this namespace"
	unheard = "the aggregator has not heard of this instance"
	unknown = "keys are hot by rules that this file does not have"
)

// compare has a fixture's mismatch look often, besides its own that looks rarely.
func compare(t *testing.T, f *fixture, name string) {
	t.Helper()
	m := newMismatch(f.Hotparam, name)
	m.every = 50 * time.Millisecond
	testenv.Running(t, m.run)
}

// A namespace that nobody publishes for is told with those that there are, once, and also
// when somebody does.
func TestOtherNamespace(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server.URL(), "shop", nil)
	f := open(t, strings.Replace(shop(server.URL(), nowhere(t), searchRule), "namespace: shop", "namespace: shopx", 1), WithName("api"))
	f.await("shop", func() bool { return f.client.Exists(t.Context(), "hotparam:{shop}:beat").Val() == 1 })
	compare(t, f, "api")
	f.awaitLog(nobody)
	if !strings.Contains(f.log.String(), "namespace=shopx") || !strings.Contains(f.log.String(), "[shop]") {
		t.Errorf("the namespaces are not in %s", f.log)
	}
	publish(t, server.URL(), "shopx", []hotparam.Instance{{Name: "api", Heard: time.Now()}})
	f.awaitLog("an aggregator publishes hot keys for this namespace now")
	if n := f.logged(nobody); n != 1 {
		t.Errorf("logged %d times:\n%s", n, f.log)
	}
}

// The aggregator lists others, and keys are hot by a rule that the file lacks.
func TestUnheardAndUnknown(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server.URL(), "shop", []hotparam.Instance{{Name: "other", Heard: time.Now()}}, "GET /search?q=phone")
	f := open(t, strings.Replace(shop(server.URL(), nowhere(t), searchRule), "search-terms", "searches", 1), WithName("api"))
	compare(t, f, "api")
	f.awaitLog(unheard)
	f.awaitLog(unknown)
	time.Sleep(300 * time.Millisecond) // some more looks
	for _, text := range []string{unheard, unknown} {
		if n := f.logged(text); n != 1 {
			t.Errorf("%q was logged %d times:\n%s", text, n, f.log)
		}
	}
	if !strings.Contains(f.log.String(), "[search-terms]") {
		t.Errorf("the rule is not in %s", f.log)
	}
	if n := f.logged(nobody); n != 0 {
		t.Errorf("%q was logged:\n%s", nobody, f.log)
	}
}

// Where all fits, nothing is logged.
func TestMatch(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server.URL(), "shop", []hotparam.Instance{{Name: "api", Heard: time.Now()}}, "GET /search?q=phone")
	f := open(t, shop(server.URL(), nowhere(t), searchRule), WithName("api"))
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	compare(t, f, "api")
	time.Sleep(300 * time.Millisecond) // some looks
	for _, text := range []string{nobody, unheard, unknown} {
		if n := f.logged(text); n != 0 {
			t.Errorf("%q was logged:\n%s", text, f.log)
		}
	}
}

// Rules without thresholds need no aggregator, and StatsD servers of others learn no names.
func TestNothingToCompare(t *testing.T) {
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), strings.Replace(productRule, "%d", "2", 1)))
	if m := newMismatch(f.Hotparam, "api"); m.detects {
		t.Error("an aggregator is expected for rules without thresholds")
	}
	f = open(t, strings.Replace(shop("redis://"+nowhere(t), nowhere(t), searchRule), "statsd: {", "statsd: {meta: false, ", 1))
	if m := newMismatch(f.Hotparam, "api"); m.name != "" || !m.detects {
		t.Errorf("%+v, want no name without meta lines", m)
	}
}
