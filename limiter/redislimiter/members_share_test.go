package redislimiter

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// heldShare is a share in the form of a text.
type heldShare struct {
	held    string
	ages    []time.Duration
	endowed []time.Duration
}

func (h *heldShare) HandOver() []byte {
	held := h.held
	h.held = ""
	return []byte(held)
}

func (h *heldShare) Inherit(handover []byte, age time.Duration) error {
	if strings.HasPrefix(string(handover), "bad") {
		return fmt.Errorf("%s", handover)
	}
	h.held += string(handover)
	h.ages = append(h.ages, age)
	return nil
}

func (h *heldShare) Endow(idle time.Duration) { h.endowed = append(h.endowed, idle) }

// holding returns a member with a share. The test sends its heartbeats.
func holding(t *testing.T, client redis.UniversalClient, name, held string) (*Members, *heldShare) {
	t.Helper()
	share := &heldShare{held: held}
	return membersOf(t, client, name, func(c *MembersConfig) { c.Shares = share }), share
}

// beaten sends heartbeats until a condition holds.
func beaten(t *testing.T, what string, condition func() bool, all ...*Members) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, m := range all {
			m.beat(t.Context())
		}
		return condition()
	})
}

// Exactly one member takes over the share of a member that leaves.
func TestHandoverIsClaimedOnce(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	stays, _ := holding(t, client, "stays", "")
	stays.beat(t.Context())
	for range 20 {
		leaver, _ := holding(t, client, "leaver", "share")
		leaver.beat(t.Context())
		leaver.leaveFleet(t.Context())
		var (
			all     sync.WaitGroup
			members [8]*Members
			shares  [8]*heldShare
		)
		for i := range members {
			members[i], shares[i] = holding(t, client, fmt.Sprint("joiner-", i), "")
			all.Go(func() { members[i].beat(t.Context()) })
		}
		all.Wait()
		got := ""
		for i, share := range shares {
			got += share.held
			if n := members[i].Stats().Inherited; n != uint64(len(share.ages)) {
				t.Errorf("%d are counted as inherited, %d were", n, len(share.ages))
			}
			members[i].leaveFleet(t.Context())
			if age := share.ages; len(age) > 0 && (age[0] < 0 || age[0] > patience) {
				t.Errorf("it was %v old", age)
			}
		}
		client.Del(t.Context(), stays.keys()[2])
		if got != "share" {
			t.Fatalf("the joiners have %q", got)
		}
	}
}

// A member claims one handover, skips one that is too old, and continues without one that it cannot
// read. The number of waiting handovers is bounded.
func TestHandoversAreBounded(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	stays, _ := holding(t, client, "stays", "")
	stays.beat(t.Context())
	key := stays.keys()[2]
	now := client.Time(t.Context()).Val().UnixMilli()
	must(t, client.HSet(t.Context(), key, "a", fmt.Sprint(now-handoverLasts.Milliseconds()-1000, " old"), "b", fmt.Sprint(now-1000, " first"), "c", fmt.Sprint(now, " second")).Err())
	joiner, share := holding(t, client, "joiner", "")
	for range 3 {
		joiner.beat(t.Context())
	}
	if got := client.HGetAll(t.Context(), key).Val(); share.held != "first" || len(got) != 1 || got["c"] == "" {
		t.Errorf("it has %q, and there are %v", share.held, got)
	}
	must(t, client.HSet(t.Context(), key, "c", fmt.Sprint(now, " bad")).Err())
	other, share := holding(t, client, "other", "")
	other.beat(t.Context())
	if share.held != "" || other.Stats().Inherited != 0 || !other.Stats().Connected {
		t.Errorf("%q, %+v", share.held, other.Stats())
	}
	for i := range maxHandovers + 3 {
		leaver, _ := holding(t, client, fmt.Sprint("leaver-", i), "share")
		leaver.leaveFleet(t.Context())
	}
	if n := client.HLen(t.Context(), key).Val(); n != maxHandovers {
		t.Errorf("%d handovers", n)
	}
	if ttl := client.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > handoverLasts {
		t.Errorf("they last %v", ttl)
	}
	long, _ := holding(t, client, "long", strings.Repeat("x", maxHandover+1))
	if long.handOver() != "" {
		t.Error("a handover of any length")
	}
}

// The members of a new fleet get their shares together, once all have come. A member that joins
// later starts without a share. If the fleet starts again, its members share what was earned since
// the last one left.
func TestFleetBegins(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	a, first := holding(t, client, "a", "")
	b, second := holding(t, client, "b", "")
	a.beat(t.Context())
	b.beat(t.Context())
	if a.Stats().Settled || b.Stats().Settled {
		t.Error("settled at once")
	}
	beaten(t, "the fleet to begin", func() bool { return a.Stats().Settled && b.Stats().Settled }, a, b)
	c, third := holding(t, client, "c", "")
	c.beat(t.Context())
	if got := fmt.Sprint(first.endowed, second.endowed, third.endowed, c.Stats().Settled); got != "[-1ms] [-1ms] [] true" {
		t.Errorf("the shares are endowed with %s", got)
	}
	for _, m := range []*Members{a, b, c} {
		m.leaveFleet(t.Context())
	}
	if ttl := client.PTTL(t.Context(), a.keys()[1]).Val(); ttl <= 0 || ttl > fleetKept {
		t.Errorf("that there was a fleet is known for %v", ttl)
	}
	d, fourth := holding(t, client, "d", "")
	beaten(t, "the fleet to begin again", func() bool { return d.Stats().Settled }, d)
	if len(fourth.endowed) != 1 || fourth.endowed[0] < 0 || fourth.endowed[0] > patience {
		t.Errorf("the share is endowed with %v", fourth.endowed)
	}
}

// A Redis that has lost everything knows no fleet. A new instance does not become the first one
// because of that.
func TestLostFleetDoesNotBegin(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	old, _ := holding(t, client, "old", "")
	beaten(t, "the fleet to begin", func() bool { return old.Stats().Settled }, old)
	must(t, client.FlushAll(t.Context()).Err())
	late, share := holding(t, client, "late", "")
	late.beat(t.Context())
	old.beat(t.Context())
	beaten(t, "the new one to settle", func() bool { return late.Stats().Settled }, late, old)
	if len(share.endowed) > 0 {
		t.Errorf("it is endowed with %v", share.endowed)
	}
}

// A silent member loses the part of its share that the others earned without it. If all were
// silent, no one loses anything.
func TestSilentMember(t *testing.T) {
	t.Parallel()
	client := clientAt(t, testenv.Redis(t).URL())
	a, share := holding(t, client, "a", "share")
	b, other := holding(t, client, "b", "other")
	beaten(t, "the fleet to begin", func() bool { return a.Stats().Settled && b.Stats().Settled }, a, b)
	dies := func(members ...*Members) {
		for _, m := range members {
			must(t, client.ZAdd(t.Context(), m.key, redis.Z{Member: m.member, Score: 1}).Err())
		}
	}
	dies(a, b)
	a.beat(t.Context())
	b.beat(t.Context())
	if len(share.ages)+len(other.ages) > 0 {
		t.Errorf("after an outage of all, %v and %v were taken off", share.ages, other.ages)
	}
	dies(a)
	b.beat(t.Context())
	a.beat(t.Context())
	if len(share.ages) != 1 || share.held != "share" || len(other.ages) > 0 {
		t.Errorf("%v and %v were taken off", share.ages, other.ages)
	}
}

// Without Redis the assumed number comes into force after a while, and is logged once.
func TestAssumedNumber(t *testing.T) {
	var log testenv.LogBuffer
	share := &heldShare{}
	m := membersOf(t, clientAt(t, "redis://127.0.0.1:1"), "a", func(c *MembersConfig) {
		c.Shares, c.Logger, c.Assumed = share, slog.New(slog.NewTextHandler(&log, nil)), func() int { return 4 }
	})
	m.beat(t.Context())
	if len(share.endowed) > 0 || m.Stats().Assumed != 0 {
		t.Errorf("at once: %v, %+v", share.endowed, m.Stats())
	}
	beaten(t, "the assumption", func() bool { return m.Stats().Assumed == 4 }, m)
	m.beat(t.Context())
	if len(share.endowed) != 1 || share.endowed[0] >= 0 || strings.Count(log.String(), "instances=4") != 1 {
		t.Errorf("%v\n%s", share.endowed, &log)
	}
	m.recordCount(3, true, time.Now())
	if s := m.Stats(); s.Assumed != 0 || s.Count != 3 {
		t.Errorf("%+v", s)
	}
}
