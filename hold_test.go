package hotparam

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// holding returns the text of a file that holds hot keys for a time.
func holding(redisURL, statsd, span string) string {
	return strings.Replace(shop(redisURL, statsd, searchRule), "aggregator: {", "aggregator: {hold_when_away: "+span+", ", 1)
}

// With hold_when_away a hot key stays limited after the aggregator and Redis have stopped, with
// its used tokens. A change of the file ends that, and so does a release.
func TestHoldWhenAway(t *testing.T) {
	t.Parallel()
	server, statsd := testenv.Redis(t), nowhere(t)
	f := open(t, holding(server.URL(), statsd, "1h"), WithName("a"))
	stop := publish(t, server.URL(), "shop", nil, "GET /search?q=phone", "GET /search?q=lamp")
	f.await("two hot keys", func() bool { return len(f.HotKeys()) == 2 })
	if n := f.passes(10, "/search?q=phone"); n > 2 || n < 2-f.unanswered() {
		t.Errorf("%d of 10 requests of a hot key passed, want a burst of 2", n)
	}
	stop()
	f.awaitLog("hot keys are held")
	if n := f.passes(10, "/search?q=phone"); n != 0 {
		t.Errorf("%d of 10 requests of a held key passed, want none: its burst was taken", n)
	}
	wantSample(t, f, 2, "held_keys")
	client, err := hotkeys.NewClient(testenv.Patient(t, server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f.await("the heartbeat", func() bool { return hotkeys.AreKeysHeld(t.Context(), client, "shop") })
	key := rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}
	begin := time.Now()
	if _, err := hotkeys.CarryOut(t.Context(), client, "shop", hotkeys.ControlOrder{Key: key, Claimed: "ann"}); err != nil {
		t.Fatal(err)
	}
	f.await("the release", func() bool { return len(f.HotKeys()) == 1 })
	t.Logf("released within %v", time.Since(begin))
	wantSample(t, f, 1, "held_keys")
	if n := f.passes(10, "/search?q=phone"); n != 10 {
		t.Errorf("%d of 10 requests of a released key passed", n)
	}
	server.Kill()
	f.await("an outage", func() bool { return !f.Stats().Watcher.Connected })
	if n := len(f.HotKeys()); n != 1 {
		t.Errorf("%d keys are hot", n)
	}
	f.write(holding(server.URL(), statsd, "0s"))
	f.await("the end", func() bool { return len(f.HotKeys()) == 0 })
	f.awaitLog("hot keys are no longer held")
	wantSample(t, f, 0, "held_keys")
	wantSample(t, f, 0, "held_seconds")
}

// If Redis is killed while the aggregator lives, no limit is lifted.
func TestHoldWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	f := open(t, holding(server.URL(), nowhere(t), "1m"))
	publish(t, server.URL(), "shop", nil, "GET /search?q=phone")
	f.await("a hot key", func() bool { return len(f.HotKeys()) == 1 })
	server.Kill()
	f.awaitLog("hot keys are held")
	server.Restart()
	f.awaitLog("hot keys are no longer held")
	if n := len(f.HotKeys()); n != 1 {
		t.Errorf("%d keys are hot after Redis has returned", n)
	}
}
