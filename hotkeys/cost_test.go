package hotkeys

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// A change of a hold is published at once, its evidence with the next renewal, and a process that
// adopts the key continues with both.
func TestHoldIsPublished(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		want := func(hold *published.Hold) {
			t.Helper()
			if got := f.r.hot[hot(text(1), 1, 1).Text].Hold; !reflect.DeepEqual(got, hold) {
				t.Errorf("published %+v, want %+v", got, hold)
			}
		}
		held := func(edit func(h *published.Hold)) (h published.Hot, hold *published.Hold) {
			h = hot(text(1), 100, 50)
			h.Hold = &published.Hold{Pool: "db", Stage: published.HoldTrial, Share: 0.9, Each: time.Second, Usual: time.Millisecond, Slow: 90 * time.Millisecond, Now: 90 * time.Millisecond}
			edit(h.Hold)
			return h, h.Hold
		}
		trial, hold := held(func(*published.Hold) {})
		for _, h := range []published.Hot{trial, func() published.Hot {
			kept, _ := held(func(h *published.Hold) { h.Stage = published.HoldKept })
			return kept
		}(), func() published.Hot {
			more, _ := held(func(h *published.Hold) { h.Stage, h.Permits = published.HoldKept, 2 })
			return more
		}(), hot(text(1), 100, 50)} {
			f.publish(hots(h))
			f.push(lastPush(t, client))
			want(h.Hold)
		}

		wantStored := func(hold *published.Hold) {
			t.Helper()
			set, err := readWholeSet(ctx, client, testLayout)
			if must(t, err); len(set.hot) != 1 || !reflect.DeepEqual(set.hot[0].Hold, hold) {
				t.Errorf("stored %+v, want %+v", set.hot, hold)
			}
		}
		f.publish(hots(trial))
		f.push(lastPush(t, client))
		before := version(t, client)
		now, evidence := held(func(h *published.Hold) { h.Now = 5 * time.Millisecond })
		f.p.Refresh(0, []published.Hot{now})
		must(t, f.p.settle(ctx))
		f.poll()
		if version(t, client) != before {
			t.Error("new evidence is a change of the set")
		}
		wantStored(hold)
		must(t, f.p.renew(ctx))
		wantStored(evidence)

		next := testPublisher(t, client, nil)
		adopted, _, err := next.Adopt(ctx)
		must(t, err)
		if len(adopted) != 1 || !reflect.DeepEqual(adopted[0].Hold, evidence) {
			t.Errorf("adopted %+v", adopted)
		}
		must(t, next.renew(ctx))
		wantStored(evidence)
	})
}
