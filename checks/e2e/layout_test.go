package e2e

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// checkLayout checks that Redis holds the keys that the design names, and nothing else.
func (f *fleet) checkLayout() {
	t := f.t
	t.Helper()
	ctx := t.Context()
	f.awaitInstances(3)
	within(t, patience, "nothing of the window unknown", func() bool { // right after a start some of it is
		return !strings.Contains(f.client.HGet(ctx, f.layout.Info, phone).Val(), `"high":null`)
	})
	var (
		names          *redis.StringSliceCmd
		hot            *redis.ZSliceCmd
		info, owners   *redis.MapStringStringCmd
		version, state *redis.StringCmd
		fleet          *redis.StringCmd
		beat           *redis.DurationCmd
		clock          *redis.TimeCmd
	)
	_, err := f.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		names = tx.Keys(ctx, "*")
		hot = tx.ZRangeWithScores(ctx, "hotparam:{shop}:hot", 0, -1)
		info = tx.HGetAll(ctx, "hotparam:{shop}:info")
		owners = tx.HGetAll(ctx, "hotparam:{shop}:owners")
		version = tx.Get(ctx, "hotparam:{shop}:version")
		state = tx.Get(ctx, "hotparam:{shop}:schema")
		fleet = tx.Get(ctx, "hotparam:{shop}:beat")
		beat = tx.PTTL(ctx, "hotparam:{shop}:beat")
		clock = tx.Time(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"beat", "events", "hot", "info", "instances", "members:heard", "members:info", "members:versions", "owners", "schema", "version"}
	for i := range want {
		want[i] = "hotparam:{shop}:" + want[i]
	}
	// With StatsD after a second, and after a renewal:
	later := func(name string) bool {
		return name == "hotparam:{shop}:snapshot:"+f.owner || strings.HasPrefix(name, "hotparam:{shop}:suspects:near:")
	}
	if got := slices.DeleteFunc(slices.Sorted(slices.Values(names.Val())), later); !slices.Equal(got, want) {
		t.Errorf("keys in Redis: %q, want %q: nothing is suspect while counts are exact", got, want)
	}
	if fleet.Val() != `{"instances":3,"suspects":""}` {
		t.Errorf("beat: %s, want three instances and no suspects", fleet.Val())
	}
	if len(hot.Val()) != 1 || hot.Val()[0].Member != phone {
		t.Fatalf("hot: %v, want %q alone", hot.Val(), phone)
	}
	f.checkInfo(info.Val(), hot.Val()[0].Score, clock.Val())
	if !regexp.MustCompile(`^[0-9A-Za-z]+:[1-9][0-9]*$`).MatchString(version.Val()) {
		t.Errorf("version: %q, want run:n", version.Val())
	}
	if owners.Val()[f.owner] != "1" {
		t.Errorf("owners: %v, want %s at epoch 1", owners.Val(), f.owner)
	}
	if state.Val() != "1" {
		t.Errorf("schema: %q, want 1", state.Val())
	}
	if ttl := beat.Val(); ttl <= 0 || ttl > f.beat {
		t.Errorf("beat: time to live %v, want over 0 and at most %v", ttl, f.beat)
	}
}

// awaitInstances waits until Redis has so many instances, all seen recently.
func (f *fleet) awaitInstances(n int) {
	f.t.Helper()
	within(f.t, patience, "all instances known", func() bool {
		return f.client.ZCard(f.t.Context(), "hotparam:{shop}:instances").Val() == int64(n)
	})
	now := f.client.Time(f.t.Context()).Val()
	for _, z := range f.client.ZRangeWithScores(f.t.Context(), "hotparam:{shop}:instances", 0, -1).Val() {
		if age := now.Sub(time.UnixMilli(int64(z.Score))); age < -time.Second || age > 10*time.Second {
			f.t.Errorf("%v was last heard of %v ago, want at most 10s", z.Member, age)
		}
	}
}

func (f *fleet) checkInfo(infos map[string]string, score float64, clock time.Time) {
	f.t.Helper()
	if len(infos) != 1 {
		f.t.Errorf("info: %v, want %q alone", infos, phone)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(infos[phone]), &fields); err != nil {
		f.t.Fatalf("info of %q: %v in %q", phone, err, infos[phone])
	}
	delete(fields, "top")      // where it comes from, when that is known
	delete(fields, "outcomes") // which are published some seconds later
	want := []string{"burst", "high", "kind", "limit", "low", "min", "mode", "owner", "ratio", "scope", "since", "threshold", "unit", "until", "window_ms"}
	if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
		f.t.Errorf("info: fields %q, want %q", got, want)
	}
	low, _ := fields["low"].(float64)
	if low < threshold*0.8 || low > 2*phoneRate || score != low {
		f.t.Errorf("low %v and score %v: want the count of the last second, about %d, for both", low, score, phoneRate)
	}
	if high, _ := fields["high"].(float64); high < low {
		f.t.Errorf("high %v: want at least low, %v", fields["high"], low)
	}
	if fields["limit"] != "10/s" || fields["burst"] != float64(burst) || fields["mode"] != "limit" || fields["owner"] != f.owner {
		f.t.Errorf("info: %s, want limit 10/s, burst %d, mode limit, owner %s", infos[phone], burst, f.owner)
	}
	millis := func(name string) time.Duration {
		at, _ := fields[name].(float64)
		return time.UnixMilli(int64(at)).Sub(clock)
	}
	if since := millis("since"); since > 0 || since < -patience {
		f.t.Errorf("since is %v from Redis's clock, want a short time before it", since)
	}
	if until := millis("until"); until <= 0 || until > 15*time.Second {
		f.t.Errorf("until is %v from Redis's clock, want up to 15s after it", until)
	}
}

// checkEvents checks that the stream has both events: hot, then cool.
func (f *fleet) checkEvents() {
	f.t.Helper()
	events, err := f.client.XRange(f.t.Context(), f.layout.Events, "-", "+").Result()
	if err != nil {
		f.t.Fatal(err)
	}
	var story []string
	var at []time.Time
	for _, e := range events {
		text, _ := e.Values["change"].(string)
		var change struct {
			Version string
			At      int64
			Hot     []struct{ Rule, Key string }
			Cool    []string
		}
		if err := json.Unmarshal([]byte(text), &change); err != nil || change.Version != e.Values["version"] {
			f.t.Fatalf("event %v: %v", e.Values, err)
		}
		for _, h := range change.Hot {
			story = append(story, "hot "+rules.Key{Rule: h.Rule, Text: h.Key}.String())
			at = append(at, time.UnixMilli(change.At))
		}
		for _, member := range change.Cool {
			story = append(story, "cool "+member)
			at = append(at, time.UnixMilli(change.At))
		}
	}
	if !slices.Equal(story, []string{"hot " + phone, "cool " + phone}) {
		f.t.Fatalf("events: %q, want that phone became hot, then cooled", story)
	}
	if held := at[1].Sub(at[0]); held < 900*time.Millisecond { // the hold of 1s begins with the flush before
		f.t.Errorf("phone was hot for %v, want the hold of 1s at least", held)
	}
}
