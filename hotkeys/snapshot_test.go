package hotkeys

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Only the owner's holder writes a snapshot. Its successor reads it.
func TestSnapshotIsTheHolders(t *testing.T) {
	server := miniredis.RunT(t)
	client := testClient(t, "redis://"+server.Addr())
	ctx := t.Context()
	first, second := testPublisher(t, client, nil), testPublisher(t, client, nil)
	if data, err := first.LoadSnapshot(ctx); data != nil || err != nil {
		t.Fatalf("loaded %q, %v before anything was saved", data, err)
	}
	if err := first.SaveSnapshot(ctx, []byte("a"), time.Minute); !errors.Is(err, errNotHolder) {
		t.Errorf("saved without the owner: %v", err)
	}
	must(t, first.settle(ctx))
	must(t, first.SaveSnapshot(ctx, []byte("a\x00b"), time.Minute))
	if ttl := server.TTL(testLayout.Snapshots + "statsd"); ttl != time.Minute {
		t.Errorf("it is kept for %v", ttl)
	}
	must(t, second.settle(ctx))
	if err := first.SaveSnapshot(ctx, []byte("late"), time.Minute); !errors.Is(err, errNotHolder) {
		t.Errorf("saved after another one has taken the owner: %v", err)
	}
	if data, err := second.LoadSnapshot(ctx); string(data) != "a\x00b" || err != nil {
		t.Errorf("loaded %q, %v", data, err)
	}
	must(t, second.SaveSnapshot(ctx, []byte(strings.Repeat("x", maxSnapshot+1)), time.Minute))
	if data, err := second.LoadSnapshot(ctx); data != nil || err != nil {
		t.Errorf("loaded %d bytes, %v", len(data), err)
	}
	must(t, client.Del(ctx, testLayout.Snapshots+"statsd").Err())
	must(t, client.LPush(ctx, testLayout.Snapshots+"statsd", "foreign").Err())
	if data, err := second.LoadSnapshot(ctx); data != nil || err != nil {
		t.Errorf("loaded %q, %v of a list", data, err)
	}
	must(t, second.SaveSnapshot(ctx, []byte("c"), time.Minute))
}
