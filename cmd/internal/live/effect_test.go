package live

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// loaded returns a key with a limit of 50/s (burst 100) that has had a count each second, the
// oldest first. Its upper bounds are more above the counts.
func loaded(more int64, counts ...int64) HotKey {
	h := HotKey{
		Hot: published.Hot{
			Key: rules.Key{Rule: "terms", Text: "GET /search?q=phone"}, Mode: rules.ModeLimit, Scope: rules.ScopeFleet,
			Cause: published.Cause{Kind: rules.FixedRate, Rate: rules.Rate{N: 200, Per: time.Second}},
			Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 100,
		},
		Admitted: admitted.Gauge{Limits: 1},
	}
	for i, n := range counts {
		h.Low, h.High, h.Rate = n, n+more, float64(n)
		h.History = h.History.add(newPoint(time.Unix(1_700_000_000+int64(i), 0), &h.Hot))
	}
	return h
}

func steady(n int, count int64) (counts []int64) {
	for range n {
		counts = append(counts, count)
	}
	return counts
}

func TestEffect(t *testing.T) {
	minute := steady(100, 250)
	change := func(f func(*HotKey), keys HotKey) HotKey { f(&keys); return keys }
	refuse := func(share float32) func(*HotKey) { // of the last minute, as instances report
		return func(h *HotKey) {
			h.Admitted.Rates = admitted.Rates{Passed: 1 - float64(share), Refused: float64(share)}
			for i := range h.History.points {
				h.History.points[i].refused = share
			}
		}
	}
	for name, test := range map[string]struct {
		hot    HotKey
		action published.ControlAction
		want   string
	}{
		"block":             {change(refuse(0.8), loaded(0, minute...)), published.ControlBlock, "In the last minute it would have refused all of 15,000 requests. In fact about 12,000 of them were refused."},
		"block, bounds":     {change(refuse(0.5), loaded(25, minute...)), published.ControlBlock, "In the last minute it would have refused all of 15,000-16,500 requests. In fact about 7,500-8,250 of them were refused."},
		"block, none":       {change(refuse(0), loaded(0, minute...)), published.ControlBlock, "In the last minute it would have refused all of 15,000 requests. None of them were refused."},
		"block, no reports": {loaded(0, minute...), published.ControlBlock, "In the last minute it would have refused all of 15,000 requests."},
		"block, some":       {change(func(h *HotKey) { refuse(0.8)(h); h.Admitted.AtLeast = true }, loaded(0, minute...)), published.ControlBlock, "In the last minute it would have refused all of 15,000 requests."},
		"pin":               {loaded(0, minute...), published.ControlPin, "In the last minute it would have refused 12,000 of 15,000 requests."},
		"pin, the burst":    {loaded(0, 250, 250), published.ControlPin, "In the last 2s it would have refused 300 of 500 requests."},
		"pin, spared":       {change(func(h *HotKey) { h.Spared = true; refuse(0)(h) }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused 12,000 of 15,000 requests. None of them were refused."},
		"pin, shadow":       {change(func(h *HotKey) { h.Mode = rules.ModeShadow }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused none of 15,000 requests, since the limit is in shadow mode."},
		"pin, waits":        {change(func(h *HotKey) { h.Mode = rules.ModeWait }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have delayed or refused 12,000 of 15,000 requests."},
		"pin, three limits": {change(func(h *HotKey) { h.Scope, h.Admitted.Limits = "", 3 }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused 6,000 of 15,000 requests."},
		"pin, how many":     {change(func(h *HotKey) { h.Scope, h.Admitted.Limits = "", 0 }, loaded(0, minute...)), published.ControlPin, "In the last minute there were 15,000 requests. How many of them it would have refused is not known."},
		"allow":             {change(refuse(0.8), loaded(0, minute...)), published.ControlAllow, "In the last minute it would have let all of 15,000 requests pass. In fact about 12,000 of them were refused."},
		"allow, no reports": {loaded(0, minute...), published.ControlAllow, "In the last minute it would have let all of 15,000 requests pass. How many of them were refused is not known."},
		"release":           {change(refuse(1), loaded(0, minute...)), "", "In the last minute its rule alone would have refused 12,000 of 15,000 requests. In fact about 15,000 of them were refused."},
		"release, held":     {change(func(h *HotKey) { h.Hold, h.Limit = &published.Hold{Stage: published.HoldKept}, rules.Rate{} }, loaded(0, minute...)), "", "In the last minute there were 15,000 requests. How many of them its rule alone would have refused is not known."},
		"release, spared":   {change(func(h *HotKey) { h.Spared = true }, loaded(0, minute...)), "", "In the last minute its rule alone would have refused none of 15,000 requests, since the key is spared."},
		"just hot":          {loaded(0), published.ControlBlock, "Not known: the key has just become hot."},
		"not hot":           {HotKey{}, published.ControlBlock, "Not known: the key is not hot, so its requests are not counted one by one."},
		"losses": {change(func(h *HotKey) {
			h.History.points[99].high = newPoint(time.Time{}, &published.Hot{High: published.Unknown}).high
		}, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused at least 12,000 of at least 15,000 requests."},
		"a longer window": {change(func(h *HotKey) { h.Cause.Rate.Per = 10 * time.Second }, loaded(5, minute...)), published.ControlPin, "In the last minute it would have refused about 12,000-12,300 of about 15,000-15,300 requests."},
		"bytes":           {change(func(h *HotKey) { h.Cause.Unit = rules.Bytes }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused 12.0 kB of 15.0 kB."},
		"samples":         {change(func(h *HotKey) { h.Estimated = true }, loaded(0, minute...)), published.ControlPin, "In the last minute it would have refused about 12,000 of about 15,000 requests."},
	} {
		s := &Snapshot{Hot: []HotKey{test.hot}}
		key := rules.Key{Rule: "terms", Text: "GET /search?q=phone"}
		if got := s.Effect(key, test.action); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// A limit refuses no more than there is, and leaves no more than its rate and burst allow. More
// requests do not make it refuse fewer.
func TestEffectIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Int64Range(0, 2000), 1, MaxPoints+50).Draw(t, "counts")
		more := rapid.Int64Range(0, 500).Draw(t, "more")
		h := loaded(more, counts...)
		h.Burst = rapid.Int64Range(0, 5000).Draw(t, "burst")
		h.Mode = rapid.SampledFrom([]rules.Mode{rules.ModeLimit, rules.ModeShadow, rules.ModeWait, rules.ModeServe, rules.ModeWatch}).Draw(t, "mode")
		l := loadOf(&h)
		if l.span != time.Duration(min(60, len(counts)))*time.Second {
			t.Fatalf("%v of %d points", l.span, len(counts))
		}
		passed := l.offered.low - l.over.low
		if l.over.low > l.over.high || l.over.high > l.offered.high || l.over.low < 0 || passed > float64(h.Burst)+50*l.span.Seconds()+1e-6*l.offered.low {
			t.Fatalf("%+v", l)
		}
		s := &Snapshot{Hot: []HotKey{h}}
		for _, action := range []published.ControlAction{"", published.ControlPin, published.ControlBlock, published.ControlAllow} {
			if words := s.Effect(h.Key, action); !strings.HasPrefix(words, "In the last ") || strings.Contains(words, "%!") {
				t.Fatalf("%q: %q", action, words)
			}
		}
	})
}
