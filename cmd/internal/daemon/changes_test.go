package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A heating is one line. A change of the key's limit adds none.
func TestChangeLogSaysHotOncePerHeating(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	client, err := hotkeys.NewClient("redis://127.0.0.1:1/0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	changes := changeLog{log: slog.New(slog.NewTextHandler(&out, nil))}
	lines := func(change published.Change, want ...string) {
		t.Helper()
		out.Reset()
		changes.write(&change, publisher)
		if n := strings.Count(out.String(), "\n"); n != len(want) {
			t.Errorf("%d lines, want %d:\n%s", n, len(want), out.String())
		}
		for _, w := range want {
			if !strings.Contains(out.String(), "msg="+w) {
				t.Errorf("no %s in\n%s", w, out.String())
			}
		}
	}
	h := hotkeytest.Hot(hotkeytest.Text(1), 212, 50)
	lines(hotkeytest.Hots(h), "hot")
	h.Limit.N, h.Cause.Rate = 20, rules.Rate{N: 150, Per: time.Second}
	lines(hotkeytest.Hots(h))
	h.Mode = rules.ModeShadow
	lines(hotkeytest.Hots(h))
	outcomes := new(admitted.Totals)
	h.Outcomes = &published.FleetOutcomes{Outcomes: published.Outcomes{Passed: 1, Refused: 61_200}}
	outcomes.Inherit([]published.Hot{h})
	changes.outcomes, h.Outcomes = outcomes, nil
	lines(hotkeytest.Cools(h), "cool")
	if !strings.Contains(out.String(), `requests="61,200 of 61,201 would have been refused"`) {
		t.Errorf("no outcomes in %s", out.String())
	}
	h.Since = h.Since.Add(time.Minute)
	lines(hotkeytest.Hots(h), "hot")
	h.Since = h.Since.Add(time.Minute) // its end was not reported, as when a partition moved
	lines(hotkeytest.Hots(h), "hot")
}
