package hotparam

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

const (
	nobody  = "no aggregator publishes hot keys for this namespace"
	unheard = "counts of this instance do not reach an aggregator"
	unknown = "keys are hot by rules that this file does not have"
)

func mismatchOf(h *Hotparam, name string) *mismatch {
	return newMismatch(h.client, h.log, h.guard, h.file, name)
}

// compare runs a second mismatch check that looks often, in addition to the fixture's own, which
// looks rarely.
func compare(t *testing.T, f *fixture, name string) {
	t.Helper()
	m := mismatchOf(f.Hotparam, name)
	m.every = 50 * time.Millisecond
	testenv.Running(t, m.run)
}

// If no aggregator publishes for the namespace, the log says so once and lists the existing
// namespaces. It also says when an aggregator has come.
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
	publish(t, server.URL(), "shopx", []published.Instance{{Name: "api", Heard: time.Now()}})
	f.awaitLog("an aggregator publishes hot keys for this namespace now")
	if n := f.logged(nobody); n != 1 {
		t.Errorf("logged %d times:\n%s", n, f.log)
	}
}

// The aggregator lists other instances, and keys are hot by a rule that the file lacks.
func TestUnheardAndUnknown(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server.URL(), "shop", []published.Instance{{Name: "other", Heard: time.Now()}}, "GET /search?q=phone")
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

// If the instance and the aggregator agree, nothing is logged.
func TestMatch(t *testing.T) {
	server := testenv.Redis(t)
	publish(t, server.URL(), "shop", []published.Instance{{Name: "api", Heard: time.Now()}}, "GET /search?q=phone")
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

// Rules without thresholds need no aggregator, and StatsD servers of other systems do not know the
// instances' names.
func TestNothingToCompare(t *testing.T) {
	f := open(t, shop("redis://"+nowhere(t), nowhere(t), strings.Replace(productRule, "%d", "2", 1)))
	if m := mismatchOf(f.Hotparam, "api"); m.detects() {
		t.Error("an aggregator is expected for rules without thresholds")
	}
	f = open(t, strings.Replace(shop("redis://"+nowhere(t), nowhere(t), searchRule), "statsd: {", "statsd: {meta: false, ", 1))
	if m := mismatchOf(f.Hotparam, "api"); m.name != "" || !m.detects() {
		t.Errorf("%+v, want no name without meta lines", m)
	}
}

// The rights that docs/REDIS.md lists for instances are enough, except for the search for other
// namespaces.
func TestRightsOfMismatch(t *testing.T) {
	text, err := os.ReadFile("docs/REDIS.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ACL SETUSER hotparam-reader .*$`).FindString(string(text))
	if line == "" {
		t.Fatal("docs/REDIS.md has no line ACL SETUSER hotparam-reader")
	}
	for name, test := range map[string]struct{ more, want string }{
		"reader": {"", `"there are"=[]`},
		"scan":   {"+scan", `"there are"=[toys]`},
		"none":   {"-zscore", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := testenv.Redis(t)
			publish(t, server.URL(), "toys", nil)
			admin, err := hotkeys.NewClient(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { admin.Close() })
			var words []any
			for word := range strings.FieldsSeq(line + " " + test.more) {
				words = append(words, word)
			}
			if err := admin.Do(t.Context(), words...).Err(); err != nil {
				t.Fatal(err)
			}
			f := open(t, shop(strings.Replace(server.URL(), "redis://", "redis://hotparam-reader:PASSWORD@", 1), nowhere(t), searchRule))
			f.await("toys", func() bool { return admin.Exists(t.Context(), "hotparam:{toys}:beat").Val() == 1 })
			m := mismatchOf(f.Hotparam, "api")
			for range 3 {
				m.check(t.Context())
			}
			if m.cannotBeLooked != (test.want == "") {
				t.Errorf("cannotBeLooked is %v", m.cannotBeLooked)
			}
			lines := 0
			for _, line := range f.log.Lines() {
				if strings.Contains(line, nobody) {
					lines++
					if !strings.Contains(line, test.want) {
						t.Errorf("%q is not in %s", test.want, line)
					}
				}
			}
			if m.cannotBeLooked == (lines > 0) || lines > 1 {
				t.Errorf("logged %d times:\n%s", lines, f.log)
			}
		})
	}
}

// In a cluster each server has some of the namespaces.
func TestNamespacesOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	t.Parallel()
	client, err := hotkeys.NewClient(testenv.RedisCluster(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	want := []string{"a", "b", "c", "d", "e", "f"}
	for _, namespace := range want {
		if err := client.Set(t.Context(), "hotparam:{"+namespace+"}:beat", "{}", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	m := &mismatch{client: client}
	got := m.namespaces(t.Context())
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
