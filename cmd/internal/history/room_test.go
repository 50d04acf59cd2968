package history

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A server that others fill is left alone, whatever its policy: the history stops, limits stay, and it
// goes on by itself when there is room.
func TestFullServer(t *testing.T) {
	for _, policy := range []string{"noeviction", "allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) { fullServer(t, policy) })
	}
}

func fullServer(t *testing.T, policy string) {
	s, f := testStore(t), newTraffic(50)
	ctx := t.Context()
	var log bytes.Buffer
	w := testWriter(s, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for i := range 200 { // limits
		must(t, s.client.Set(ctx, fmt.Sprintf("hotparam:{shop/%d}:limit", i), "state", time.Hour).Err())
	}
	must(t, s.client.ConfigSet(ctx, "maxmemory-policy", policy).Err())
	r, err := s.room(ctx)
	must(t, err)
	must(t, s.client.ConfigSet(ctx, "maxmemory", fmt.Sprint(r.used+2<<20)).Err())
	fill := func(part float64) { // as another program does
		t.Helper()
		for n := 0; ; n++ {
			r, err := s.room(ctx)
			must(t, err)
			if r.fraction() >= part {
				return
			}
			must(t, s.client.RPush(ctx, "other", strings.Repeat("x", 8<<10)).Err())
		}
	}
	from := int64(epoch0)
	f.run(t, w, from, 50)
	fill(stopAt + 0.005)
	f.run(t, w, from+50, 50)
	if st := w.Stats(); !strings.Contains(st.Paused, policy) || st.Panes > 52 {
		t.Fatalf("%+v", st)
	}
	must(t, s.client.Do(ctx, "RPOP", "other", 8).Err()) // a little room does not start it again
	f.run(t, w, from+100, 10)
	if w.Stats().Paused == "" {
		t.Errorf("it goes on at once: %.3f", mustRoom(t, s).fraction())
	}
	if n := len(s.client.Keys(ctx, "hotparam:{shop/*").Val()); n != 200 {
		t.Errorf("%d limits are left", n)
	}
	must(t, s.client.Del(ctx, "other").Err())
	f.run(t, w, from+110, 60)
	if w.Stats().Paused != "" || w.Stats().Dropped != (DroppedPanes{}) {
		t.Errorf("%+v", w.Stats())
	}
	v := read(t, s, from, from+170, 1000)
	f.check(t, v)
	if len(v.Gaps) != 0 { // the seconds waited
		t.Errorf("gaps %v", v.Gaps)
	}
	if n := strings.Count(log.String(), "history has stopped"); n != 1 || strings.Count(log.String(), "history goes on") != 1 {
		t.Errorf("log:\n%s", log.String())
	}
}

func mustRoom(t *testing.T, s *Store) room {
	t.Helper()
	r, err := s.room(t.Context())
	must(t, err)
	return r
}

// The history itself fills no server: with a bound far above the server's memory it stops before.
func TestHistoryFillsNoServer(t *testing.T) {
	s, f := testStore(t), newTraffic(300)
	ctx := t.Context()
	must(t, s.client.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	must(t, s.client.Set(ctx, "hotparam:{shop/1}:limit", "state", time.Hour).Err())
	most := mustRoom(t, s).used + 600<<10
	must(t, s.client.ConfigSet(ctx, "maxmemory", fmt.Sprint(most)).Err())
	w := testWriter(s, nil)
	for i := range int64(1500) {
		w.Add(f.second(epoch0 + i))
		w.step(ctx)
		w.retry = time.Time{}
	}
	if w.Stats().Paused == "" {
		t.Fatalf("%.2f used, and not stopped: %+v", mustRoom(t, s).fraction(), w.Stats())
	}
	info := s.client.Info(ctx, "stats").Val()
	if !strings.Contains(info, "evicted_keys:0\r\n") || s.client.Exists(ctx, "hotparam:{shop/1}:limit").Val() != 1 {
		t.Errorf("a limit was evicted: %s", info)
	}
}

func TestRoomOfServers(t *testing.T) {
	for text, want := range map[string]float64{
		"# Memory\r\nused_memory:80\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n": 0.8,
		"used_memory:80\r\nmaxmemory:0\r\n":                                              0,
		"":                                                                               0,
	} {
		if got := parseRoom(text).fraction(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
