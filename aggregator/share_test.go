package aggregator

import (
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// A share is of requests: those that have several keys of a group count once. What
// stands for keys beyond is compared with all other groups of its route.
func TestShareIsOfRequests(t *testing.T) {
	counts := map[string]int64{
		"GET /s?q=a": 30, "GET /s?q=b": 30, "GET /s?q=c": 10, "GET /s?~again&q": 30, // 40 requests
		"GET /s?page=1&q=a": 20, "GET /s?~again&page&q": 10, // 10
		"GET /s?~more":   20,
		"GET /other?q=z": 1000,
		"GET /s?*":       70, "GET /other?*": 1000, // of no group
	}
	for _, test := range []struct {
		share float64
		want  []string
	}{
		{1, []string{"GET /other?q=z", "GET /s?page=1&q=a"}}, // which has more than its group: the lines do not fit each other
		{0.75, []string{"GET /other?q=z", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
		{0.4, []string{"GET /other?q=z", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b", "GET /s?~more"}},
		{0.41, []string{"GET /other?q=z", "GET /s?page=1&q=a", "GET /s?q=a", "GET /s?q=b"}},
	} {
		rule := hotRule("r", 10, time.Second)
		rule.By.Kind = hotparam.ByEach
		rule.Hot[0].Kind, rule.Hot[0].Factor = hotparam.Share, test.share
		out := newRecorder()
		d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out})
		d.Advance(noon)
		for text, n := range counts {
			d.Count(Count{Hash: testHash(text), Text: []byte(text), N: n, When: noon.Add(50 * time.Millisecond)})
		}
		d.Advance(noon.Add(500 * time.Millisecond))
		var got []string
		for _, change := range out.changes {
			for _, h := range change.Hot {
				got = append(got, h.Text)
			}
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("share %v: %q, want %q", test.share, got, test.want)
		}
		if keys := d.Stats().Keys; keys != 6 {
			t.Errorf("%d keys, want the 6 that are some", keys)
		}
	}
}

// What is taken off leaves the window with the counts, and takes room that is counted.
func TestTakenOffIsForgotten(t *testing.T) {
	const budget = 2*(groupSize+4*10) + 4*10
	g := newGroups(10, budget, false)
	g.takeOff([]byte("GET /s?~again&q"), 1, 5)
	g.add([]byte("GET /s?q=1"), 1, 8)
	g.add([]byte("GET /s?p=1"), 1, 8)
	g.takeOff([]byte("GET /s?~again&p"), 1, 5) // no room
	g.takeOff([]byte("GET /s?~again&o"), 1, 5)
	if of := g.of([]byte("GET /s?q=2"), false); of == nil || of.sum(5, 10) != 3 || of.sum(12, 10) != 0 {
		t.Errorf("%+v", of)
	}
	if of := g.of([]byte("GET /s?p=2"), false); of == nil || of.sum(5, 10) != 8 {
		t.Errorf("%+v", of)
	}
	if len(g.byName) != 2 || g.used() != budget {
		t.Errorf("%d groups, %d bytes", len(g.byName), g.used())
	}
	g.sweep(20)
	if len(g.byName) != 0 || g.used() != 0 {
		t.Errorf("%d groups, %d bytes after all is over", len(g.byName), g.used())
	}
}
