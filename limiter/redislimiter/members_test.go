package redislimiter

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

func membersOf(tb testing.TB, client redis.UniversalClient, name string, edit func(*MembersConfig)) *Members {
	tb.Helper()
	cfg := MembersConfig{Namespace: namespaceOf(tb), Name: name, Every: 20 * time.Millisecond, Dead: 10 * time.Second, Timeout: patience}
	if edit != nil {
		edit(&cfg)
	}
	m, err := NewMembers(client, cfg)
	must(tb, err)
	return m
}

func counts(all ...*Members) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%d ", m.Count())
	}
	return strings.TrimSpace(b.String())
}

func membersJoinAndLeave(t *testing.T, client redis.UniversalClient) {
	a, b := membersOf(t, client, "api-1", nil), membersOf(t, client, "api-2", nil)
	again := membersOf(t, client, "api-2", nil) // another process of that name
	if got := counts(a, b); got != "0 0" {
		t.Errorf("before Run: %s, want 0 0", got)
	}
	testenv.Running(t, a.Run)
	eventually(t, "one", func() bool { return counts(a) == "1" })
	stop := testenv.Running(t, b.Run)
	eventually(t, "two", func() bool { return counts(a, b) == "2 2" })
	testenv.Running(t, again.Run)
	eventually(t, "three, two of one name", func() bool { return counts(a, b, again) == "3 3 3" })
	stop()
	eventually(t, "two again", func() bool { return counts(a, again) == "2 2" })
	if n := client.ZCard(t.Context(), "hotparam:{"+namespaceOf(t)+"}:members").Val(); n != 2 {
		t.Errorf("%d in Redis, want 2", n)
	}
}

// A member that dies silently stops counting once it is dead. So does one whose last heartbeat is
// in the future because Redis's clock was set back.
func TestMembersDeath(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	a := membersOf(t, client, "api-1", nil)
	b := membersOf(t, client, "api-2", func(c *MembersConfig) { c.Dead = 200 * time.Millisecond })
	testenv.Running(t, a.Run)
	b.beat(t.Context())
	if b.Count() < 1 {
		t.Fatalf("%d, %+v", b.Count(), b.Stats())
	}
	eventually(t, "the death", func() bool { return a.Count() == 1 })
	future := float64(time.Now().Add(time.Hour).UnixMilli())
	must(t, client.ZAdd(t.Context(), a.key, redis.Z{Member: "api-3", Score: future}).Err())
	eventually(t, "the one from the future to go", func() bool { return errors.Is(client.ZScore(t.Context(), a.key, "api-3").Err(), redis.Nil) })
	if ttl := client.PTTL(t.Context(), a.key).Val(); ttl <= 0 || ttl > longestDead {
		t.Errorf("the key lasts %v", ttl)
	}
}

// The defaults ensure that a death is known within three seconds.
func TestMembersDefaults(t *testing.T) {
	c := MembersConfig{}.withDefaults()
	if worst := c.Dead + c.Every; worst > 3*time.Second {
		t.Errorf("a death is known after up to %v", worst)
	}
	for name, edit := range map[string]func(*MembersConfig){
		"Namespace": func(c *MembersConfig) { c.Namespace = "a b" },
		"Name":      func(c *MembersConfig) { c.Name = "" },
		"Every":     func(c *MembersConfig) { c.Every = time.Millisecond },
		"Dead":      func(c *MembersConfig) { c.Dead = c.Every },
		"Timeout":   func(c *MembersConfig) { c.Timeout = -1 },
	} {
		cfg := MembersConfig{Namespace: "shop", Name: "a"}.withDefaults()
		edit(&cfg)
		if err := cfg.validate(); err == nil || !strings.Contains(err.Error(), "MembersConfig."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewMembers(nil, MembersConfig{Namespace: "shop", Name: "a"}); err == nil {
		t.Error("without a client: no error")
	}
}

// While Redis is unavailable the last count stays in force. The log has one line for the start of
// the outage and one for its end.
func TestMembersRedisAway(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := clientAt(t, server.URL())
	var log testenv.LogBuffer
	var told []int
	a := membersOf(t, client, "api-1", func(c *MembersConfig) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.OnChange = func(n int) { told = append(told, n) }
	})
	b := membersOf(t, client, "api-2", nil)
	stopA := testenv.Running(t, a.Run)
	testenv.Running(t, b.Run)
	eventually(t, "both", func() bool { return counts(a, b) == "2 2" })
	server.Kill()
	failures := a.Stats().Failures
	eventually(t, "failures", func() bool { return a.Stats().Failures > failures+2 })
	if got := counts(a); got != "2" || a.Stats().Connected {
		t.Errorf("while Redis is away: %s, %+v", got, a.Stats())
	}
	server.Restart()
	eventually(t, "Redis again", func() bool { return a.Stats().Connected && b.Stats().Connected })
	if got := counts(a, b); got != "2 2" {
		t.Errorf("after Redis lost all: %s, want 2 2: nobody has left", got)
	}
	if s := a.Stats(); s.Rejoins != 1 {
		t.Errorf("%+v, want one rejoin", s)
	}
	stopA()
	if text := log.String(); strings.Count(text, "does not answer") != 1 || strings.Count(text, "answers again") != 1 {
		t.Errorf("log: %s", text)
	}
	if got := fmt.Sprint(told); got != "[1 2]" && got != "[2]" {
		t.Errorf("OnChange: %s", got)
	}
}

// If the count falls right after this member was lost, the lower count is ignored until the others
// had time to return.
func TestMembersComeBackTogether(t *testing.T) {
	m := membersOf(t, clientAt(t, "redis://localhost"), "a", func(c *MembersConfig) { c.Dead = 2 * time.Second })
	now := time.Now()
	for _, step := range []struct {
		n     int
		isNew bool
		after time.Duration
		want  int
	}{
		{1, true, 0, 1}, // the first member
		{5, false, 0, 5},
		{4, false, 0, 4},
		{1, true, time.Second, 4}, // Redis lost its state
		{2, false, time.Second, 4},
		{6, false, 0, 6},
		{3, false, time.Second, 3},
	} {
		now = now.Add(step.after)
		m.recordCount(step.n, step.isNew, now)
		if got := m.Count(); got != step.want {
			t.Errorf("%+v: %d", step, got)
		}
	}
}

// If every other heartbeat is lost, the log does not report each loss. If it reports an outage, it
// reports its end as well.
func TestMembersFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		m := membersOf(t, clientAt(t, "redis://127.0.0.1:1"), "api-1", func(c *MembersConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		for range 600 { // ten minutes
			m.recordFailure(errors.New("no answer"))
			m.recordCount(1, false, time.Now())
			time.Sleep(time.Second)
		}
		begun, over := strings.Count(log.String(), "does not answer"), strings.Count(log.String(), "answers again")
		if begun < 30 || begun > 41 || begun != over || !strings.Contains(log.String(), "unlogged=14") {
			t.Errorf("%d beginnings and %d ends are logged, want one in %v", begun, over, outageRate.Every)
		}
	})
}
