package hotkeys

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// placesModel gives out places by searching for the best key again and again. It shares no code
// with the implementation that it checks.
type placesModel struct {
	cap   int
	rules []string // rules that have a guarantee
}

func (m placesModel) share() int {
	if len(m.rules) == 0 {
		return 0
	}
	return m.cap / len(m.rules)
}

func isLimited(h published.Hot) bool { return h.Mode == rules.ModeLimit }

// choose returns the members that get a place, given the members that had one.
func (m placesModel) choose(hot map[string]published.Hot, had map[string]bool) map[string]bool {
	chosen := make(map[string]bool)
	claim := func(member string) float64 {
		if had[member] {
			return hot[member].Ratio * 2
		}
		return hot[member].Ratio
	}
	best := func(fits func(string) bool) (found string) {
		for member := range hot {
			if chosen[member] || !fits(member) {
				continue
			}
			switch a, b := claim(member), claim(found); {
			case found == "", a > b:
				found = member
			case a == b && had[member] != had[found]:
				if had[member] {
					found = member
				}
			case a == b && member < found:
				found = member
			}
		}
		return found
	}
	for _, limited := range []bool{true, false} {
		due := make(map[string]bool)
		for _, rule := range m.rules {
			taken := 0
			for member := range chosen {
				if hot[member].Rule == rule {
					taken++
				}
			}
			for ; taken < m.share(); taken++ {
				member := best(func(x string) bool { return !due[x] && hot[x].Rule == rule && isLimited(hot[x]) == limited })
				if member == "" {
					break
				}
				due[member] = true
			}
		}
		for _, within := range []bool{true, false} {
			for len(chosen) < m.cap {
				member := best(func(x string) bool { return isLimited(hot[x]) == limited && due[x] == within })
				if member == "" {
					break
				}
				chosen[member] = true
			}
		}
	}
	return chosen
}

// promises returns the promise that the places break, in words, or "" if they break none.
func (m placesModel) promises(hot map[string]published.Hot, placed map[string]bool) string {
	if len(placed) != min(m.cap, len(hot)) {
		return fmt.Sprintf("%d of %d hot keys have a place, of %d", len(placed), len(hot), m.cap)
	}
	limited, hotLimited := make(map[string]int), make(map[string]int)
	for member, h := range hot {
		if isLimited(h) {
			hotLimited[h.Rule]++
			if placed[member] {
				limited[h.Rule]++
			}
		}
	}
	for _, rule := range m.rules {
		if limited[rule] < min(m.share(), hotLimited[rule]) {
			return fmt.Sprintf("rule %s has %d places for %d keys, and is guaranteed %d", rule, limited[rule], hotLimited[rule], m.share())
		}
	}
	for waits, w := range hot {
		for has, h := range hot {
			if placed[waits] || !placed[has] {
				continue
			}
			guaranteed := slices.Contains(m.rules, h.Rule) && h.Rule != w.Rule && limited[h.Rule] <= m.share()
			switch {
			case isLimited(w) && !isLimited(h):
				return fmt.Sprintf("%s is limited and waits, %s is not and has a place", waits, has)
			case isLimited(w) && isLimited(h) && !guaranteed && w.Ratio > 2*h.Ratio:
				return fmt.Sprintf("%s waits with %v, %s has a place with %v", waits, w.Ratio, has, h.Ratio)
			}
		}
	}
	return ""
}

// displaced returns a key that lost its place to no key entitled to it, in words, or "" if there is
// none.
func (m placesModel) displaced(hot map[string]published.Hot, before, after map[string]bool) string {
	of := make(map[string]int) // limited keys with a place, by rule
	for member := range after {
		if isLimited(hot[member]) {
			of[hot[member].Rule]++
		}
	}
	for lost := range before {
		h, still := hot[lost]
		if !still || after[lost] {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(after)), func(member string) bool {
			n := hot[member]
			switch {
			case before[member] || !isLimited(n) && isLimited(h):
				return false
			case isLimited(n) && !isLimited(h), n.Ratio > 2*h.Ratio:
				return true
			}
			return n.Rule != h.Rule && slices.Contains(m.rules, n.Rule) // a guarantee, which promises checks
		}) {
			return fmt.Sprintf("%s lost its place with %v", lost, h.Ratio)
		}
	}
	return ""
}

// drawHot draws a hot key. It uses few ratios, so that many are equal.
func drawHot(t *rapid.T, key int) published.Hot {
	h := hot(text(key), 100, 50)
	h.Rule = fmt.Sprint("r", key%5)
	h.Mode = rapid.SampledFrom([]rules.Mode{rules.ModeLimit, rules.ModeLimit, rules.ModeShadow, rules.ModeWatch}).Draw(t, "mode")
	if h.Mode == rules.ModeWatch {
		h.Limit, h.Burst = rules.Rate{}, 0
	}
	h.Ratio = drawRatio(t)
	return h
}

func drawRatio(t *rapid.T) float64 {
	return rapid.SampledFrom([]float64{0, 1, 1, 1.5, 2, 2, 2.1, 3, 4, 4.1, 9, 50}).Draw(t, "ratio")
}

func placedIn(top map[string]published.Hot) map[string]bool {
	placed := make(map[string]bool, len(top))
	for member := range top {
		placed[member] = true
	}
	return placed
}

// Keys of rules with and without a guarantee become hot, change, cool and are refreshed at random,
// in two parts. As long as all are known, the places are exactly the model's. However many there
// were, the places equal the model's again within two refreshes.
func TestPlacesAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := placesModel{cap: rapid.IntRange(1, 12).Draw(t, "cap")}
		for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
			m.rules = append(m.rules, fmt.Sprint("r", i))
		}
		d := newDesired(m.cap, m.rules)
		as := func(h published.Hot) published.Hot { return h }
		hotNow, keys := make(map[string]published.Hot), rapid.SampledFrom([]int{8, 20, 60}).Draw(t, "keys")
		placed, complete := map[string]bool{}, true
		look := func(what string) {
			t.Helper()
			after := placedIn(d.top())
			if complete && len(hotNow) <= d.keptByTrim() {
				if want := m.choose(hotNow, placed); !maps.Equal(after, want) {
					t.Fatalf("%s: places of %v, want %v; before %v of %v", what, after, want, placed, hotNow)
				}
			}
			if words := m.displaced(hotNow, placed, after); words != "" {
				t.Fatalf("%s: %s; before %v, then %v of %v", what, words, placed, after, hotNow)
			}
			if len(d.known) > 2*m.cap {
				t.Fatalf("%s: %d keys are known, with %d places", what, len(d.known), m.cap)
			}
			placed = after
		}
		refresh := func(part int) (changed bool) {
			var all []published.Hot
			for _, member := range slices.Sorted(maps.Keys(hotNow)) {
				if h := hotNow[member]; len(h.Text)%2 == part {
					all = append(all, h)
				}
			}
			return d.refresh(part, all, as)
		}
		for range rapid.IntRange(1, 80).Draw(t, "acts") {
			key := rapid.IntRange(0, keys-1).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				member := drawHot(t, key).Key.String()
				if h, ok := hotNow[member]; ok {
					delete(hotNow, member)
					changed := d.remove(h.Key)
					if placed[member] && !changed {
						t.Fatalf("%s cooled, and nothing changed", member)
					}
				}
				complete = complete && len(hotNow) <= len(d.known)
				look("cooled")
			case 2:
				part := rapid.IntRange(0, 1).Draw(t, "part")
				for _, member := range slices.Sorted(maps.Keys(hotNow)) {
					if h := hotNow[member]; len(h.Text)%2 == part {
						h.Ratio = drawRatio(t)
						hotNow[member] = h
					}
				}
				knew := len(d.known) == len(hotNow)
				before := placedIn(d.top())
				changed := refresh(part)
				if now := placedIn(d.top()); changed == maps.Equal(before, now) {
					t.Fatalf("places of %v became %v, and changed is %v", before, now, changed)
				}
				complete = complete && knew
				look("refreshed")
				complete = len(d.known) == len(hotNow)
			default:
				h := drawHot(t, key)
				hotNow[h.Key.String()] = h
				before := placedIn(d.top())
				changed := d.set(h)
				if now := placedIn(d.top()); !changed && !maps.Equal(before, now) {
					t.Fatalf("places of %v became %v, and nothing changed", before, now)
				}
				complete = complete && len(d.known) == len(hotNow)
				look("set")
			}
		}
		for range 2 {
			refresh(0)
			look("refreshed in the end")
			refresh(1)
			look("refreshed in the end")
		}
		if refresh(0) || refresh(1) {
			t.Fatal("the places are not given out for good after two refreshes")
		}
		if words := m.promises(hotNow, placed); words != "" {
			t.Fatalf("%s; %v of %v", words, placed, hotNow)
		}
		if want := m.choose(hotNow, placed); !maps.Equal(placed, want) {
			t.Fatalf("places of %v, want %v of %v", placed, want, hotNow)
		}
		waiting := 0
		for rule, of := range d.places() {
			waiting += of.Waiting
			n := 0
			for _, h := range hotNow {
				if h.Rule == rule {
					n++
				}
			}
			if of.Placed+of.Waiting != n {
				t.Fatalf("%d of the keys of %s have a place and %d wait, want %d in sum", of.Placed, rule, of.Waiting, n)
			}
		}
		if want := len(hotNow) - len(placed); waiting != want {
			t.Fatalf("%d keys wait, want %d", waiting, want)
		}
	})
}

// The same keys in any order get the same places in an empty set.
func TestPlacesDoNotDependOnTheOrder(t *testing.T) {
	var first []string
	for seed := range uint64(20) {
		d := newDesired(10, []string{"a", "b"})
		change := make([]published.Hot, 30)
		for i := range change {
			change[i] = hot(text(i), 100, 50)
			change[i].Rule = string(rune('a' + i%3))
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(change), func(i, j int) { change[i], change[j] = change[j], change[i] })
		for _, h := range change {
			d.adopt(h)
		}
		got := slices.Sorted(maps.Keys(d.top()))
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Fatalf("seed %d: %v, want %v", seed, got, first)
		}
	}
}

// BenchmarkFlood measures a publisher's cost per key of a flood of hot keys while the set is full:
// the cost of the change, and of the work that it causes in the publisher's goroutine.
func BenchmarkFlood(b *testing.B) {
	const flood = 40_000
	keys := make([]published.Hot, flood)
	for i := range keys {
		keys[i] = hot(text(i), 100+float64(i%100), 50)
	}
	b.Run("publish", func(b *testing.B) {
		p := testPublisher(b, testClient(b, "redis://127.0.0.1:1"), nil)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p.Publish(published.Change{Hot: keys[i%flood : i%flood+1]})
			select {
			case <-p.wake:
				p.top()
			default:
			}
		}
	})
	b.Run("refresh", func(b *testing.B) {
		p := testPublisher(b, testClient(b, "redis://127.0.0.1:1"), nil)
		b.ReportAllocs()
		for b.Loop() {
			p.Refresh(0, keys)
			select {
			case <-p.wake:
				p.top()
			default:
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*flood), "ns/key")
	})
}
