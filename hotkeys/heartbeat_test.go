package hotkeys

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// A member is listed with its data, the others know its versions, and it disappears when it ends.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := t.Context()
	start := func(m published.Member, version *atomic.Value) (h *Heartbeat, stop func()) {
		h, err := NewHeartbeat(client, HeartbeatConfig{Namespace: testNamespace, Every: 20 * time.Millisecond, Member: func() published.Member {
			m.RulesVersion = version.Load().(string)
			return m
		}})
		must(t, err)
		run, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- h.Run(run) }()
		return h, func() { cancel(); must(t, <-done) }
	}
	var old, next atomic.Value
	old.Store("v1")
	next.Store("v2")
	full := published.Member{
		Name: "agg 1", Role: published.RoleAggregator, Program: "v1.2.3", Started: time.UnixMilli(1_700_000_000_000), Dropped: 7, Lost: 8, Arrived: 9,
		MemoryUsed: 1 << 20, MemoryMax: 64 << 20, Floor: 3, Waiting: 4, Held: 5, HeldSince: time.UnixMilli(1_700_000_060_000), Displaced: 5,
		Admitted: []published.Admitted{{ID: 1<<64 - 1, N: 700, Span: 10 * time.Second}, {ID: 7, N: 3, Span: 1500 * time.Millisecond}}, MoreAdmitted: true, Problem: `line 3: "bad"`,
	}
	agg, stopAgg := start(full, &next)
	_, stopAPI := start(published.Member{Name: "api-1", Role: published.RoleInstance}, &old)
	within(t, "both versions", patience, func() bool { return slices.Equal(agg.Stats().Versions, []string{"v1", "v2"}) })
	within(t, "an offset", patience, func() bool { return agg.Stats().Sent > 2 })
	members, err := ListMembers(ctx, client, testNamespace)
	must(t, err)
	if len(members) != 2 || members[1].Name != "api-1" || members[1].RulesVersion != "v1" {
		t.Fatalf("%+v", members)
	}
	got := members[0]
	if age := time.Since(got.Heard); !got.OffsetKnown || got.Offset.Abs() > time.Minute || age < 0 || age > 5*time.Second {
		t.Errorf("%+v", got)
	}
	got.Heard, got.Offset, got.OffsetKnown, got.Incarnation = time.Time{}, 0, false, ""
	full.RulesVersion = "v2"
	if !reflect.DeepEqual(got, full) {
		t.Errorf("%+v\nwant %+v", got, full)
	}
	old.Store("v2") // the other has read the file, too
	if took := within(t, "agreement", patience, func() bool { return slices.Equal(agg.Stats().Versions, []string{"v2"}) }); took > versionLife {
		t.Errorf("they agree after %v", took)
	}
	must(t, client.Set(ctx, testLayout.MembersInfo, "foreign", 0).Err())
	within(t, "a repair", patience, func() bool {
		members, err := ListMembers(ctx, client, testNamespace)
		return err == nil && len(members) == 2
	})
	stopAPI()
	stopAgg()
	if members, err := ListMembers(ctx, client, testNamespace); err != nil || len(members) != 0 {
		t.Errorf("%+v, %v", members, err)
	}
	for _, key := range []string{testLayout.Members, testLayout.MembersInfo, testLayout.MembersVersions} {
		if ttl := client.PTTL(ctx, key).Val(); ttl > memberLife || ttl == -1 {
			t.Errorf("%s lasts %v", key, ttl)
		}
	}
}

// The last heartbeat of an instance that has counted the outcomes of requests stays for a while,
// for the sums over all instances. It is no longer a member.
func TestLastHeartbeat(t *testing.T) {
	t.Parallel()
	client := testClient(t, testenv.Redis(t).URL())
	ctx := t.Context()
	outcomes := published.Outcomes{Passed: 1}
	h, err := NewHeartbeat(client, HeartbeatConfig{Namespace: testNamespace, Timeout: patience, Member: func() published.Member {
		return published.Member{Name: "api-1", Role: published.RoleInstance, Admitted: []published.Admitted{{ID: 7, Span: time.Second, Since: time.UnixMilli(1), Outcomes: outcomes}}}
	}})
	must(t, err)
	h.beat(ctx)
	outcomes.Refused = 9
	ended, cancel := context.WithCancel(ctx)
	cancel()
	h.leave(ended)
	members, err := ListMembers(ctx, client, testNamespace)
	must(t, err)
	former, err := ListFormerMembers(ctx, client, testNamespace)
	must(t, err)
	if len(members) != 0 || len(former) != 1 || !former[0].Left || former[0].Incarnation != h.id || former[0].Admitted[0].Outcomes != outcomes {
		t.Errorf("%+v, %+v", members, former)
	}
}

// Dead members are removed, and so are members beyond the bound.
func TestMembersAreBounded(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := t.Context()
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 100 {
			p.ZAdd(ctx, testLayout.Members, redis.Z{Score: float64(i), Member: fmt.Sprint("dead ", i)})
			p.HSet(ctx, testLayout.MembersInfo, fmt.Sprint("dead ", i), "{}")
			p.ZAdd(ctx, testLayout.MembersVersions, redis.Z{Score: float64(i), Member: fmt.Sprint("v", i)})
		}
		p.ZAdd(ctx, testLayout.Members, redis.Z{Score: 9e15, Member: "future 1"})
		return nil
	})
	must(t, err)
	h, err := NewHeartbeat(client, HeartbeatConfig{Namespace: testNamespace, Timeout: patience, Member: func() published.Member {
		return published.Member{Name: strings.Repeat("x", 300), Role: published.RoleInstance, RulesVersion: "v", Problem: strings.Repeat("ü", 2000)}
	}})
	must(t, err)
	for range 12 {
		h.beat(ctx)
	}
	if n := client.ZCard(ctx, testLayout.Members).Val() + client.HLen(ctx, testLayout.MembersInfo).Val(); n != 2 {
		t.Errorf("%d entries", n)
	}
	if s := h.Stats(); !slices.Equal(s.Versions, []string{"v"}) {
		t.Errorf("%+v", s)
	}
	members, err := ListMembers(ctx, client, testNamespace)
	must(t, err)
	if len(members) != 1 || len(members[0].Name) != published.MaxMemberName || len(members[0].Problem) > 512 {
		t.Errorf("%+v", members)
	}
}

// add returns the count of the last minute.
func TestLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lastMinute
		total := int64(5)
		if n := l.add(time.Now(), total); n != 5 {
			t.Errorf("%d at first", n)
		}
		for range 59 {
			time.Sleep(time.Second)
			total++
			if n := l.add(time.Now(), total); n != total {
				t.Errorf("%d, want %d", n, total)
			}
		}
		for range 100 {
			time.Sleep(time.Second)
			total++
			if n := l.add(time.Now(), total); n < 59 || n > 64+1 {
				t.Errorf("%d in a minute", n)
			}
		}
		time.Sleep(2 * time.Minute)
		if n := l.add(time.Now(), total); n != 0 {
			t.Errorf("%d after two quiet minutes", n)
		}
	})
}

// A lasting difference of versions is logged once, and so is its end.
func TestDiffering(t *testing.T) {
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	var d differing
	now := time.Now()
	for i := range 30 {
		d.compare(log, "v1", []string{"v1", "v2"}, now.Add(time.Duration(i)*time.Second))
		if logged := strings.Contains(lines.String(), "different rules"); logged != (i >= 5) {
			t.Fatalf("after %d s: %s", i, lines.String())
		}
	}
	d.compare(log, "v2", []string{"v2"}, now.Add(time.Minute))
	if n := strings.Count(lines.String(), "\n"); n != 2 || !strings.Contains(lines.String(), "the same rules again") {
		t.Errorf("%s", lines.String())
	}
}

// The fastest answer gives the best estimate of the clock's offset.
func TestOffset(t *testing.T) {
	var o offsetEstimate
	if _, ok := o.best(); ok {
		t.Error("known before any answer")
	}
	redis := time.Now()
	add := func(took, ahead time.Duration) {
		began := redis.Add(ahead).Add(-took / 2)
		o.add(began, began.Add(took), redis)
	}
	add(300*time.Millisecond, 90*time.Millisecond)
	add(time.Millisecond, 40*time.Millisecond)
	add(100*time.Millisecond, -10*time.Millisecond)
	if got, ok := o.best(); !ok || got != 40*time.Millisecond {
		t.Errorf("%v, want 40ms", got)
	}
}
