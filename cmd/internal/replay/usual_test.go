package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// madeLog is a log of evenly spaced requests.
type madeLog struct {
	at      []time.Duration
	targets []string
}

// add adds n requests a second for a target, from one time to another. A %d in the target is
// replaced by a different number in each.
func (m *madeLog) add(from, to time.Duration, n int, target string) {
	for i := range int((to - from).Seconds() * float64(n)) {
		m.at = append(m.at, from+time.Duration(i)*time.Second/time.Duration(n))
		text := target
		if strings.Contains(target, "%d") {
			text = fmt.Sprintf(target, len(m.at))
		}
		m.targets = append(m.targets, text)
	}
}

func (m *madeLog) lines() *bytes.Buffer {
	order := make([]int, len(m.at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.at[a], m.at[b]) })
	var b bytes.Buffer
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, i := range order {
		fmt.Fprintf(&b, "{\"time\":%q,\"method\":\"GET\",\"uri\":%q}\n", began.Add(m.at[i]).Format(time.RFC3339Nano), m.targets[i])
	}
	return &b
}

// Keys that are hot in addition to a usual key are listed and limited, and the usual key is not.
// The number of refused requests is exact.
func TestUsualKeysAreSpared(t *testing.T) {
	each, all := rules.By{Kind: rules.ByEach}, rules.By{Kind: rules.ByCombinations}
	named := rules.By{Kind: rules.ByCombinations, Names: []rules.Param{{Name: "q"}, {Name: "page"}}}
	onAll := func(m *madeLog) {
		m.add(0, 20*time.Second, 850, "/s?lang=en&q=v%d")
		m.add(0, 20*time.Second, 150, "/s?lang=en&q=phone")
	}
	for _, test := range []struct {
		name    string
		by      rules.By
		limit   int64
		log     func(m *madeLog)
		limited int64  // refused requests; the comments give the number before usual keys were spared
		want    string // keys listed at the end
	}{
		{"on all requests, each", each, 50, onAll, 2742 /* 18,856 */, "lang=en spared, q=phone"},
		{"on all requests, combinations", all, 50, onAll, 2742 /* 18,856 */, "lang=en spared, q=phone"},
		{"usual page", named, 150, func(m *madeLog) {
			m.add(0, 25*time.Second, 900, "/s?page=1&q=v%d")
			m.add(15*time.Second, 25*time.Second, 500, "/s?page=1&q=phone")
		}, 14482 /* 23,451 */, "page=1 spared, q=phone"},
		{"usual page, for long", named, 150, func(m *madeLog) {
			m.add(0, 60*time.Second, 900, "/s?page=1&q=v%d")
			m.add(0, 60*time.Second, 1100, "/s?page=p%d&q=v%[1]d")
			m.add(15*time.Second, 60*time.Second, 500, "/s?page=1&q=phone")
		}, 26732 /* 67,201 */, "page=1 spared, q=phone"},
		{"behind four names", all, 50, func(m *madeLog) {
			m.add(0, 10*time.Second, 300, "/s?a&b&c&d&q=phone&x=%d")
			m.add(0, 10*time.Second, 700, "/s?a&b&c&d&q=v%d&x=%[1]d")
		}, 0, "a=&b= spared, c=&d= spared, q=phone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &madeLog{}
			test.log(m)
			got := collectListed{}
			r, err := rules.ParseRoute("GET /s")
			if err != nil {
				t.Fatal(err)
			}
			rate := rules.Rate{N: test.limit, Per: time.Second}
			rule := rules.Rule{
				ID: "r", Match: rules.Match{Route: r}, By: test.by,
				Hot:   []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})},
				Limit: &rules.Limit{Quota: rules.Quota{Rate: rate, Burst: rate.N}, Mode: rules.ModeLimit},
			}
			summary, err := Run(context.Background(), Config{
				Rules: &rules.Rules{Namespace: "shop", Rules: []rules.Rule{rule}}, Log: stdin(t, m.lines()),
				OnEvent: got.add, OnRelisted: got.add,
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.limited > 0 && summary.Limited != test.limited {
				t.Errorf("%d requests are refused, want %d", summary.Limited, test.limited)
			}
			if s := got.String(); s != test.want {
				t.Errorf("listed at the end: %s, want %s", s, test.want)
			}
			if got.back {
				t.Error("what became of a key is told with a time that is long over")
			}
			if n := got.cools["GET /s?q=phone"]; n > 0 && !strings.HasPrefix(test.name, "behind") {
				t.Errorf("q=phone was taken off the list %d times", n)
			}
		})
	}
}

// collectListed records what a replay lists.
type collectListed struct {
	words map[string]string
	cools map[string]int
	last  string // time
	back  bool   // an event was of before the one before it
}

func (c *collectListed) add(e Event) {
	if c.words == nil {
		c.words, c.cools = make(map[string]string), make(map[string]int)
	}
	c.last, c.back = e.Time, c.back || e.Time < c.last[:min(len(c.last), len("2006-01-02T15:04"))]
	switch e.Event {
	case "cool":
		delete(c.words, e.Key)
		c.cools[e.Key]++
	case "hot", "limited", "unusual":
		c.words[e.Key] = ""
	default:
		c.words[e.Key] = " " + e.Event
	}
}

func (c *collectListed) String() string {
	var all []string
	for key, word := range c.words {
		all = append(all, key[len("GET /s?"):]+word)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
