package live

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
)

// A tail reads each change once, whatever the clock of Redis says in between. The stream's first
// entry may be of the very millisecond in which the tail found it empty.
func TestTailReadsEachChangeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := miniredis.NewMiniRedis()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
		defer client.Close()
		now := time.UnixMilli(1_700_000_000_000)
		server.SetTime(now)
		after := rapid.SampledFrom([]position{{}, {millis: uint64(now.UnixMilli()), kind: controlKind}}).Draw(t, "after")
		tail := newTail("shop", after, rapid.SampledFrom([]int64{0, 10}).Draw(t, "backlog"))
		var written, read []string
		look := func() {
			if err := hotkeys.Transact(t.Context(), client, func(tx redis.Pipeliner) { tail.queue(t.Context(), tx) }); err != nil {
				t.Fatal(err)
			}
			b, err := tail.newEvents(t.Context(), client)
			if err != nil || b.missed > 0 || b.lost {
				t.Fatalf("%+v, %v", b, err)
			}
			for _, e := range b.events {
				read = append(read, e.Key)
			}
		}
		look() // of an empty stream
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "ms")) * time.Millisecond)
			server.SetTime(now)
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				n := len(written) + 1
				h := hot(n, 240)
				h.Since, h.Until = now, now.Add(time.Minute)
				c := published.Push{Version: published.Version{Run: "run", N: uint64(n)}, At: now, Beat: time.Second, Hot: []published.PushEntry{{Hot: h, TTL: time.Minute}}}
				if err := client.XAdd(context.Background(), &redis.XAddArgs{Stream: tail.layout.Events, Values: []any{"version", c.Version.String(), "change", published.EncodePush(&c)}}).Err(); err != nil {
					t.Fatal(err)
				}
				written = append(written, h.Text)
			}
			look()
		}
		if fmt.Sprint(read) != fmt.Sprint(written) {
			t.Errorf("read    %q\nwritten %q", read, written)
		}
	})
}

// The position after an entry and the position before one are inverse, also at the end of a
// millisecond.
func TestNextIsTheInverseOfPrevious(t *testing.T) {
	for _, p := range []position{{millis: 1}, {millis: 7, seq: 1}, {millis: 7, seq: math.MaxUint64}} {
		if p.previous().next() != p || p.next().previous() != p {
			t.Errorf("%v: %v before it, %v after it", p.entryID(), p.previous().entryID(), p.next().entryID())
		}
	}
}
