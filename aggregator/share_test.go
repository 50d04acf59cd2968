package aggregator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/rules"
)

// A key whose text was cut names no group. It may belong to any, so it counts for the total of
// each group that has shares.
func TestSharesCountWhatHasNoGroup(t *testing.T) {
	for _, c := range []struct {
		strays int64
		want   bool
	}{{0, true}, {29, true}, {60, false}} {
		rule := hotRule("r", 1, time.Second)
		rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Share, rules.Percent(25)
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		d.Advance(noon)
		count := func(text []byte, n int64) {
			d.Count(decode.Count{Hash: testHash(string(text)), Text: text, N: n, When: noon})
		}
		count([]byte("GET /s?k=a"), 30)
		for i := range 6 { // none has a quarter itself
			count(fmt.Appendf(nil, "GET /s?k=b%d", i), 10)
		}
		for i := range c.strays {
			long := fmt.Sprintf("GET /s?k=%d", i) + strings.Repeat("x", rules.MaxText)
			count(base.CutKey([]byte(long), rules.MaxText), 1)
		}
		d.Advance(noon.Add(base.FlushInterval))
		_, hot := out.hot()[rules.Key{Rule: "r", Text: "GET /s?k=a"}]
		if hot != c.want {
			t.Errorf("30 of 90, and %d that may be of any group: hot is %v, want %v; %q", c.strays, hot, c.want, out.events())
		}
	}
}

// A share is of requests: a request with several keys of a group counts once. Counts that stand
// for further keys, or for unreadable bodies, are compared with all groups of their route.
func TestShareIsOfRequests(t *testing.T) {
	counts := map[string]int64{
		"GET /s?q=a": 30, "GET /s?q=b": 30, "GET /s?q=c": 10, "GET /s?~again&q": 30, // 40 requests
		"GET /s?page=1&q=a": 20, "GET /s?~again&page&q": 10, // 10
		"GET /s?~more": 20, "GET /s?json:~unread": 50,
		"GET /other?q=z": 1000,
		"GET /s?*":       70, "GET /other?*": 1000, // of no group
	}
	for _, test := range []struct {
		percent int64
		want    []string
	}{
		{100, []string{"GET /other?q=z", "GET /s?page=1&q=a"}}, // which has more than its group: the lines do not fit each other
		{75, []string{"GET /other?q=z", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
		{40, []string{"GET /other?q=z", "GET /s?json:~unread", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
		{20, []string{"GET /other?q=z", "GET /s?json:~unread", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b", "GET /s?q=c", "GET /s?~more"}},
		{21, []string{"GET /other?q=z", "GET /s?json:~unread", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b", "GET /s?q=c"}},
		{50, []string{"GET /other?q=z", "GET /s?json:~unread", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
		{51, []string{"GET /other?q=z", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
	} {
		rule := hotRule("r", 10, time.Second)
		rule.By.Kind = rules.ByEach
		rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Share, rules.Percent(test.percent)
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		d.Advance(noon)
		for text, n := range counts {
			d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: noon.Add(50 * time.Millisecond)})
		}
		d.Advance(noon.Add(500 * time.Millisecond))
		var got []string
		for _, change := range out.changes {
			for _, h := range change.Hot {
				got = append(got, h.Text)
			}
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("share %d%%: %q, want %q", test.percent, got, test.want)
		}
		if keys := d.Stats().Keys; keys != 7 {
			t.Errorf("%d keys, want the 7 that are some", keys)
		}
	}
}
