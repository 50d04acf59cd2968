package redislimiter

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func TestKeysOfAnyBytes(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	s := storeOf(t, client, nil)
	tagged := storeOf(t, client, func(c *Config) { c.Tag = func(name, _ string) string { return name } })
	q := quota(rules.Quota{Rate: rate(10, time.Hour)})
	form := regexp.MustCompile(`^hotparam:\{shop/[0-9a-f]{32}\}(:[0-9a-f]{32})?:limit$`)
	seen := make(map[string]bool)
	for _, pair := range [][2]string{
		{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"{", "}"}, {"{}", "{}{a}"}, {"}", "{"}, {"a", "{b}c"}, {"a", "\x00\xff\r\n * ?"}, {"a", strings.Repeat("k", 10_000)}, {"a", "\u00e9"},
	} {
		for _, s := range []*Store{s, tagged} {
			key, tag := s.keyName(pair[0], pair[1])
			if !form.MatchString(key) || seen[key] || !strings.Contains(key, "/"+tag+"}") {
				t.Errorf("%.20q is %q with the tag %q", pair, key, tag)
			}
			seen[key] = true
		}
		if pair[1] == "" {
			continue
		}
		for i := range int64(2) {
			if r := ask(t, s, limiter.Op{Quota: q, Name: pair[0], Key: pair[1], Request: limiter.Request{N: 1}}); r.Remaining != 9-i {
				t.Errorf("%.20q: %+v", pair, r)
			}
		}
	}
}

// All keys of one decision are in one slot, even if a tag has braces. So are keys with the same
// tag.
func TestNeverAcrossSlots(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	client := clusterClient(t, testenv.RedisCluster(t).Addrs())
	for name, edit := range map[string]func(*Config){
		"apart":    nil,
		"by limit": func(c *Config) { c.Tag = func(name, _ string) string { return name } },
		"braces":   func(c *Config) { c.Tag = func(_, key string) string { return "{" + key[:1] + "}}{" } },
		"empty":    func(c *Config) { c.Tag = func(string, string) string { return "" } },
	} {
		t.Run(name, func(t *testing.T) {
			s := storeOf(t, client, edit)
			ops := mixed(60)
			for i := range ops {
				ops[i].Key = []string{"{a}", "}{", "{}", "a{b}c"}[i%4] + ops[i].Key + name
			}
			takeAll(t, s, ops)
		})
	}
}

// Ops of one key are done in their order, whatever other ops are between them.
func TestResultsAreInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	for name, client := range map[string]*Store{
		"single":  storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), nil),
		"cluster": storeOf(t, clusterClient(t, testenv.RedisCluster(t).Addrs()), nil),
	} {
		ops := append(mixed(9), mixed(9)...)
		for range 2 {
			ops = append(ops, ops...)
		}
		results := make([]limiter.Result, len(ops)+1)
		must(t, client.DoAll(t.Context(), ops, results))
		for i, r := range results[:18] {
			for again := i + 18; again < len(ops); again += 18 {
				if ops[i].Quota.WarmUp == 0 && results[again].Remaining != results[again-18].Remaining-1 {
					t.Errorf("%s: %s: %d and %d remain, first %d", name, ops[i].Name, results[again-18].Remaining, results[again].Remaining, r.Remaining)
				}
			}
		}
	}
}

// Many processes ask for one key, and exactly the limit is admitted.
func TestTogetherTheyKeepTheLimit(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	const limit = 100
	for _, every := range everyQuota {
		if every.quota.WarmUp > 0 {
			continue // a burst admits less, as permits are cold
		}
		q := *every.quota
		q.Rate, q.Calendar = rate(limit, 24*time.Hour), ""
		q = q.WithDefaults()
		q.Burst = limit
		t.Run(every.name, func(t *testing.T) {
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				s := storeOf(t, storeClient(t, addr, nil), nil)
				for worker := range 4 {
					all.Go(func() {
						for i := range 20 {
							op := limiter.Op{Quota: &q, Name: every.name, Key: "key", Request: limiter.Request{N: 1}}
							if (i+worker)%3 == 0 {
								op.Request = limiter.Request{Kind: limiter.AtMost, N: 2}
							}
							r, err := s.Do(t.Context(), op)
							if err != nil {
								t.Error(err)
								return
							}
							admitted.Add(r.Taken)
						}
					})
				}
			}
			all.Wait()
			if n := admitted.Load(); n != limit {
				t.Errorf("%d of %d were admitted", n, limit)
			}
		})
	}
}

func TestNamespacesAreApart(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	q := quota(rules.Quota{Rate: rate(10, time.Hour)})
	for i := range 3 {
		s := storeOf(t, client, func(c *Config) { c.Namespace = fmt.Sprint("shop-", i) })
		if r := take(t, s, q, "key", 10); !r.Allowed {
			t.Errorf("namespace %d: %+v", i, r)
		}
	}
}
