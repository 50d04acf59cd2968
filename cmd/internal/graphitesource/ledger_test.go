package graphitesource

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func TestNames(t *testing.T) {
	watches := []watch{{prefix: "shop.a.hot_param."}, {prefix: "own.words.hot_param.", number: 1}}
	words := hotRule("words", 1, time.Second)
	words.ParamsOnly = true
	for _, test := range []struct {
		pattern, series string
		watch           int
		text            string
		why             whyNot
	}{
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.q=a", 0, "q=a", isKey},
		{"stats_counts.{name}", "stats_counts.own.words.hot_param.q=caf_C3_A9", 1, "q=caf%C3%A9", isKey},
		{"stats_counts.{name}", "stats_counts.own.words.hot_param.q=caf_25c3_25A9_26a=1", 1, "a=1&q=caf%C3%A9", isKey},
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.GET_20_2Fs_3Fq=1_26a=1", 0, "GET /s?a=1&q=1", isKey},
		{"stats.counters.{name}.count", "stats.counters.shop.a.hot_param.q=a.count", 0, "q=a", isKey},
		{"{name}", "shop.a.hot_param.q=a", 0, "q=a", isKey},
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.q_", 0, "", badKey},
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.q_ZZ", 0, "", badKey},
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.", 0, "", badKey},
		{"stats_counts.{name}", "stats.shop.a.hot_param.q=a", 0, "", foreign},
		{"stats_counts.{name}", "stats_counts.shop.b.hot_param.q=a", 0, "", foreign},
		{"stats_counts.{name}", "stats_counts.shop.a.hot_param.q=a.b", 0, "", foreign},
		{"stats.counters.{name}.count", "stats.counters.shop.a.hot_param.q=a.rate", 0, "", foreign},
		{"stats_counts.{name}", "", 0, "", foreign},
	} {
		n := newNames(&Config{Series: test.pattern, Encoding: wire.Strict, Rules: rulesOf(hotRule("a", 1, time.Second), words)}, watches)
		name, why := n.read(test.series)
		if name.watch != test.watch || string(name.text) != test.text || why != test.why {
			t.Errorf("%s: %+v %d", test.series, name, why)
		}
	}
}

// Any key is read back unchanged.
func TestNamesRoundTrip(t *testing.T) {
	c := Config{Series: DefaultSeries, Encoding: wire.Strict, Canonical: true, Rules: rulesOf(hotRule("a", 1, time.Second))}
	n := newNames(&c, []watch{{prefix: "a.hot_param."}})
	rapid.Check(t, func(t *rapid.T) {
		text := wire.Strict.Fit(rapid.SliceOfN(rapid.Byte(), 1, 600).Draw(t, "text"))
		encoded := wire.Strict.Append(nil, text)
		name, why := n.read(c.series("a.hot_param." + string(encoded)))
		if why != isKey || string(name.text) != string(text) || name.other != "" {
			t.Fatalf("%q came back as %+v (%d)", text, name, why)
		}
		if !isLiteral(encoded) {
			t.Fatalf("%q is not to be asked for by name", encoded)
		}
	})
}

// However often growing points are read, each is counted once, at its highest.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.Int64Range(3, 12).Draw(t, "keep")
		l := newLedger(newNames(&Config{Series: DefaultSeries, Encoding: wire.Strict, Rules: rulesOf(hotRule("a", 1, time.Second))}, []watch{{prefix: "a.hot_param."}}), keep, 1)
		value := rapid.Custom(func(t *rapid.T) float64 {
			return rapid.SampledFrom([]float64{math.NaN(), 0, 1, 3.25, 10.0 / 3, 1000}).Draw(t, "value")
		})
		truth := make(map[int64]float64)
		counted := make(map[int64]int64)
		var all answerCounts
		known, end := int64(100), int64(100)
		for range rapid.IntRange(1, 30).Draw(t, "polls") {
			end += rapid.Int64Range(0, keep+3).Draw(t, "more")
			s := series{name: "stats_counts.a.hot_param.k", first: known - keep + 1 - rapid.Int64Range(0, 3).Draw(t, "older")}
			from := known - keep + 1
			for i := s.first; i <= end; i++ {
				v := value.Draw(t, "v")
				s.value = append(s.value, v)
				if i >= from && v > truth[i] {
					truth[i] = v
				}
			}
			before := len(all.counts)
			l.polls++
			l.recordPoints(l.findEntry(s.name, &all), &s, from, end, &all)
			for _, c := range all.counts[before:] {
				counted[c.point] += c.n
				if c.point < from || c.point > end || c.n <= 0 {
					t.Fatalf("counts %d of point %d, of %d to %d", c.n, c.point, from, end)
				}
			}
			known = end
			l.prune(known)
		}
		sum, got := 0.0, int64(0)
		for i, v := range truth {
			sum += v
			got += counted[i]
			// A point takes at most four rising values, and each is rounded.
			if d := math.Abs(float64(counted[i]) - v); d >= 4 {
				t.Fatalf("point %d: counted %d of %v", i, counted[i], v)
			}
		}
		if math.Abs(float64(got)-sum) > 0.5+1e-6*sum || got != all.counted {
			t.Fatalf("counted %d (%d) of %v", got, all.counted, sum)
		}
	})
}

// A series that is no longer read is forgotten.
func TestLedgerForgets(t *testing.T) {
	l := newLedger(newNames(&Config{Series: DefaultSeries, Encoding: wire.Strict, Rules: rulesOf(hotRule("a", 1, time.Second))}, []watch{{prefix: "a.hot_param."}}), 5, 1)
	read := func(at int64, name string) {
		var t answerCounts
		l.polls++
		if e := l.findEntry(name, &t); e != nil {
			l.recordPoints(e, &series{name: name, first: at, value: []float64{1}}, at, at, &t)
		}
		l.prune(at)
	}
	for i := range int64(1000) {
		read(i, fmt.Sprintf("stats_counts.a.hot_param.k%d", i))
		read(i, fmt.Sprintf("stats_counts.a.hot_param._Z%d", i)) // no key
		read(i, fmt.Sprintf("stats_counts.b.hot_param.k%d", i))  // foreign
	}
	if n := len(l.entries); n > 6 {
		t.Errorf("%d entries of 5 points", n)
	}
}

// No value makes a count exceed the maximum.
func TestValues(t *testing.T) {
	l := newLedger(newNames(&Config{Series: DefaultSeries, Encoding: wire.Strict, Rules: rulesOf(hotRule("a", 1, time.Second))}, []watch{{prefix: "a.hot_param."}}), 10, 1)
	name := "stats_counts.a.hot_param.k"
	values := []float64{-1, math.Inf(1), math.Inf(-1), math.NaN(), wire.MaxCount * 1.001, math.MaxFloat64, -0.4, wire.MaxCount, math.SmallestNonzeroFloat64}
	var got answerCounts
	l.recordPoints(l.findEntry(name, &got), &series{name: name, first: 1, value: values}, 0, 100, &got)
	if got.badValue != 6 || got.points != 2 || got.counted != wire.MaxCount || len(got.counts) != 1 || got.counts[0].entry.hash != rules.Hash([]byte("k")) {
		t.Errorf("%+v", got)
	}
	if increased(math.MaxInt64-1, 5) != math.MaxInt64 || increased(3, 4) != 7 {
		t.Error("sums do not end")
	}
}
