package hotwords_test

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

func TestHoldWords(t *testing.T) {
	whole := published.Hold{
		Pool: "orders-db", Permits: 1, Stage: published.HoldKept, Share: 0.93, Each: 812 * time.Millisecond, Usual: 4100 * time.Microsecond,
		Slow: 96 * time.Millisecond, Now: 4600 * time.Microsecond,
	}
	with := func(edit func(*published.Hold)) published.Hold {
		h := whole
		edit(&h)
		return h
	}
	for want, h := range map[string]published.Hold{
		"held to 1 at a time · 93% of orders-db's time · 812 ms a request, others 4.1 ms · others 96 → 4.6 ms since": whole,
		"on trial: 0 at a time · 93% of orders-db's time · 812 ms a request, others 4.1 ms · others 96 ms meanwhile": with(func(h *published.Hold) { h.Stage, h.Permits = published.HoldTrial, 0 }),
		"suspected, not held: 93% of orders-db's time · 812 ms a request, others 4.1 ms · others 96 ms meanwhile":    with(func(h *published.Hold) { h.Stage = published.HoldSuspected }),
		"held to 2 at a time":                      {Pool: "a", Permits: 2, Stage: published.HoldKept},
		"on trial: 0 at a time · 9.9 ms a request": {Pool: "a", Stage: published.HoldTrial, Each: 9949 * time.Microsecond},
		"suspected, not held":                      {Pool: "a", Stage: published.HoldSuspected},
	} {
		if got := hotwords.Hold(&h); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
