package redislimiter

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// fullLog returns the state of a sliding log that took a permit at each of n instants.
func fullLog(n int, at func(i int) time.Duration) []byte {
	float := func(b []byte, v int64) []byte {
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
	}
	const head = 17 + 48
	last := at(n - 1).Microseconds()
	b := []byte("s")
	for _, v := range []int64{0, last, head, head + int64(n)*16, 0, int64(n), last, 0} {
		b = float(b, v)
	}
	for i := range n {
		b = float(float(b, at(i).Microseconds()), int64(i)+1)
	}
	return b
}

// A log of 100,000 permits costs Redis no more than one of 10, and no part of it exceeds Lua's
// stack.
func TestFullLog(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	const n = rules.MaxLog
	start := 1_700_000_000 * time.Second
	at := func(i int) time.Duration { return start + time.Duration(i)*time.Millisecond }
	clock := handAt(at(n - 1))
	s := storeOf(t, client, clock.of)
	q := quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(n, n*time.Millisecond)})
	must(t, client.Set(context.Background(), s.state("limit", "key"), fullLog(n, at), 0).Err())

	if r := take(t, s, q, "key", 1); r.Allowed || r.RetryAfter != time.Millisecond || r.ResetAfter != n*time.Millisecond {
		t.Fatalf("full: %+v", r)
	}
	if r := take(t, s, q, "key", n); r.Allowed || r.RetryAfter != n*time.Millisecond {
		t.Fatalf("all of a full one: %+v", r)
	}
	if r := take(t, s, q, "key", 40_000); r.Allowed || r.RetryAfter != 40_000*time.Millisecond {
		t.Fatalf("a part of a full one: %+v", r)
	}
	r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Return, N: 1, Mark: at(1).Microseconds()}})
	if r.Remaining != 1 {
		t.Fatalf("one of the oldest given back: %+v", r)
	}
	clock.pass(time.Millisecond)
	if r := take(t, s, q, "key", 2); !r.Allowed || r.Remaining != 0 {
		t.Fatalf("that, and what left: %+v", r)
	}
	if r := take(t, s, q, "key", 1); r.Allowed || r.RetryAfter != 2*time.Millisecond {
		t.Fatalf("full again: %+v", r)
	}
	clock.pass(60_000 * time.Millisecond)
	if r := take(t, s, q, "key", 1); !r.Allowed || r.Remaining != 59_998 {
		t.Fatalf("most has left: %+v", r)
	}
	if size := client.StrLen(context.Background(), s.state("limit", "key")).Val(); size > 41_000*16 {
		t.Errorf("40,000 permits take %d bytes", size)
	}
	clock.pass(time.Hour)
	if r := take(t, s, q, "key", n); !r.Allowed || r.Remaining != 0 {
		t.Fatalf("all has left: %+v", r)
	}
	if size := client.StrLen(context.Background(), s.state("limit", "key")).Val(); size > 1000 {
		t.Errorf("one entry takes %d bytes", size)
	}
}

// The state grows only with the takes in the window, for any number of admissions, denials,
// reservations and returns.
func TestStateIsBounded(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, count := range []bool{false, true} {
		for _, q := range []*rules.Quota{
			quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(50, 50*time.Millisecond), CountDenied: count}),
			quota(rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(50, 50*time.Millisecond), Blocks: 20, CountDenied: count}),
			quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(50, 50*time.Millisecond), CountDenied: count}),
		} {
			clock := handAt(1_700_000_000 * time.Second)
			s := storeOf(t, client, clock.of)
			var largest int64
			ops := make([]limiter.Op, 5)
			results := make([]limiter.Result, len(ops))
			for i := range 600 {
				clock.pass(80 * time.Microsecond) // the newest of many instants are enough
				for k := range ops {
					ops[k] = limiter.Op{Quota: q, Name: "limit", Key: "key", Request: limiter.Request{N: int64(i % 3)}}
				}
				ops[1].Request = limiter.Request{Kind: limiter.Charge, N: int64(i % 100 / 99 * 100)}
				ops[2].Request = limiter.Request{Kind: limiter.Reserve, N: 1, Within: 20 * time.Millisecond}
				ops[3].Request = limiter.Request{Kind: limiter.Return, N: 1, Mark: results[0].Mark}
				must(t, s.DoAll(context.Background(), ops, results))
				largest = max(largest, client.StrLen(context.Background(), s.state("limit", "key")).Val())
			}
			if largest > 65+16*(3*64+50) {
				t.Errorf("%s, denials counted %t: up to %d bytes", q.Algorithm, count, largest)
			}
			ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Forget}})
		}
	}
}

// Reservations far in the future are bounded as well.
func TestReservationsAreBounded(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	start := 1_700_000_000 * time.Second
	clock := handAt(start)
	s := storeOf(t, client, clock.of)
	q := quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(1, time.Millisecond)})
	ahead := 1 << 16
	must(t, client.Set(context.Background(), s.state("limit", "key"), fullLog(ahead, func(i int) time.Duration {
		return start + time.Duration(i+1)*time.Millisecond
	}), 0).Err())
	must(t, client.SetRange(context.Background(), s.state("limit", "key"), 9, string(fullLog(1, func(int) time.Duration { return start })[9:17])).Err()) // its last time
	reserve := limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Reserve, N: 1, Within: 24 * time.Hour}}
	if r := ask(t, s, reserve); r.Allowed || r.RetryAfter != time.Millisecond {
		t.Errorf("beyond all bounds: %+v", r)
	}
	clock.pass(time.Millisecond)
	if r := ask(t, s, reserve); !r.Allowed || r.Delay != time.Duration(ahead)*time.Millisecond {
		t.Errorf("within them: %+v", r)
	}
}

// The application's clock selects only the periods that are sent. Redis's clock decides.
func TestCalendarByRedisClock(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	count := new(trips)
	client.AddHook(count)
	s := storeOf(t, client, nil)
	q := quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, time.Hour), Calendar: rules.CalendarHour, Zone: "Asia/Kolkata"})
	take(t, s, q, "key", 1)
	for _, wrong := range []time.Duration{0, 10 * time.Hour, -1000 * time.Hour, 50 * 365 * 24 * time.Hour, -50 * 365 * 24 * time.Hour} {
		s.clocks.only.ahead.Store(wrong.Microseconds())
		count.single.Store(0)
		r := take(t, s, q, "key", 0)
		if !r.Allowed || r.ResetAfter > time.Hour || count.single.Load() > 2 {
			t.Errorf("%v ahead: %+v in %d calls", wrong, r, count.single.Load())
		}
		if got := time.Duration(s.clocks.only.ahead.Load()) * time.Microsecond; got.Abs() > patience {
			t.Errorf("%v ahead: then taken to be %v", wrong, got)
		}
		count.single.Store(0)
		if take(t, s, q, "key", 0); count.single.Load() != 1 {
			t.Errorf("%v ahead: %d calls afterwards", wrong, count.single.Load())
		}
	}
}

func TestCalendarReservations(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	// In Berlin, the last Sunday of October 2025 has 25 hours.
	saturday := time.Date(2025, 10, 25, 12, 0, 0, 0, berlin)
	clock := handAt(time.Duration(saturday.UnixNano()))
	s := storeOf(t, client, clock.of)
	q := quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(2, 24*time.Hour), Calendar: rules.CalendarDay, Zone: "Europe/Berlin"})
	take(t, s, q, "key", 2)
	for i, want := range []time.Duration{12, 12, 12 + 25, 12 + 25, 12 + 25 + 24} {
		r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Reserve, N: 1, Within: 100 * 24 * time.Hour}})
		if !r.Allowed || r.Delay != want*time.Hour {
			t.Errorf("reservation %d: %+v, want a delay of %v", i, r, want*time.Hour)
		}
	}
}
