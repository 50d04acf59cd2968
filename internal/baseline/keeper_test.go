package baseline

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// runKeeper runs a keeper of a process, in a bubble, until the returned function is called.
func runKeeper(t *testing.T, d *Days, s Store, office *atomic.Bool, log *bytes.Buffer) (k *Keeper, stop func()) {
	t.Helper()
	k = NewKeeper(KeeperConfig{Days: d, Store: s, InOffice: office.Load, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	synctest.Wait()
	return k, func() { cancel(); <-done }
}

func inOffice() *atomic.Bool {
	office := new(atomic.Bool)
	office.Store(true)
	return office
}

// A process compares with the counts that the one before it wrote.
func TestTheNextProcessReadsWhatThisOneWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := &memory{}, new(bytes.Buffer)
		now := HourOf(time.Now())
		first := NewDays("statsd")
		first.Want()
		_, stop := runKeeper(t, first, store, inOffice(), log)
		first.Put(0, 2, hourWith(now-24, hourSeconds, 1, 500))
		time.Sleep(keepEvery)
		first.Put(1, 2, hourWith(now-24, hourSeconds, 2, 700)) // and this at the end
		stop()

		second := NewDays("statsd")
		second.Want()
		_, stop = runKeeper(t, second, store, inOffice(), log)
		for key, want := range map[uint64]int64{1: 500, 2: 700} {
			if r, ok := second.Reference(now, testRule, key); !ok || r.Low != want || r.High != want {
				t.Errorf("key %d: %+v, %t", key, r, ok)
			}
		}
		stop()
		if log.Len() > 0 {
			t.Error(log)
		}
	})
}

// While the store is unavailable the process continues with the hours that it has, logs that
// once, and writes its own hours later.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := &memory{}, new(bytes.Buffer)
		now := HourOf(time.Now())
		_ = store.Write(t.Context(), now-24, "other/0-1", hourWith(now-24, hourSeconds, 9, 900).Append(nil))
		before := store.written()
		store.fail(true)
		d := NewDays("statsd")
		d.Want()
		k, stop := runKeeper(t, d, store, inOffice(), log)
		defer stop()
		d.Put(0, 1, hourWith(now-24, hourSeconds, 1, 500))
		time.Sleep(5 * keepEvery)
		if r, ok := d.Reference(now, testRule, 1); !ok || r.Low != 500 {
			t.Errorf("what was counted here: %+v, %t", r, ok)
		}
		if s := k.Stats(); !s.Failing || s.Failures < 5 || s.Unsaved != 1 {
			t.Errorf("while away %+v", s)
		}
		store.fail(false)
		time.Sleep(keepEvery)
		synctest.Wait()
		if r, ok := d.Reference(now, testRule, 9); !ok || r.Low != 900 {
			t.Errorf("what others counted: %+v, %t", r, ok)
		}
		if s := k.Stats(); s.Failing || s.Unsaved != 0 || store.written() != before+1 {
			t.Errorf("afterwards %+v, %d writes", s, store.written())
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines:\n%s", n, log)
		}
	})
}

// A standby reads, and writes nothing until it takes over. Then it reads again what its
// predecessor wrote.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log, office := &memory{}, new(bytes.Buffer), new(atomic.Bool)
		now := HourOf(time.Now())
		d := NewDays("statsd")
		d.Want()
		_, stop := runKeeper(t, d, store, office, log)
		defer stop()
		d.Put(0, 1, hourWith(now-24, 1000, 1, 500))
		time.Sleep(3 * keepEvery)
		synctest.Wait()
		if store.written() != 0 || store.reads == 0 {
			t.Fatalf("%d writes and %d reads while it stands by", store.written(), store.reads)
		}
		_ = store.Write(t.Context(), now-24, "statsd/0-1", hourWith(now-24, 2000, 1, 9000).Append(nil))
		_ = store.Write(t.Context(), now-48, "statsd/0-1", hourWith(now-48, hourSeconds, 1, 9000).Append(nil))
		office.Store(true)
		time.Sleep(keepEvery)
		synctest.Wait()
		if r, _ := d.Reference(now, testRule, 1); r.Days != 2 || r.Low != 9000 {
			t.Errorf("in office: %+v", r)
		}
		if n := store.written(); n != 2 {
			t.Errorf("it wrote over the longer hour: %d writes", n)
		}
	})
}

// At each full hour the hours that others may have written are read again.
func TestHoursAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := &memory{}, new(bytes.Buffer)
		d := NewDays("statsd")
		d.Want()
		_, stop := runKeeper(t, d, store, inOffice(), log)
		defer stop()
		now := HourOf(time.Now())
		_ = store.Write(t.Context(), now+1-24, "other/0-1", hourWith(now+1-24, hourSeconds, 1, 800).Append(nil))
		time.Sleep(time.Until(StartOf(now + 1).Add(keepEvery)))
		synctest.Wait()
		if r, ok := d.Reference(now+1, testRule, 1); !ok || r.Low != 800 {
			t.Errorf("%+v, %t", r, ok)
		}
	})
}

// Nothing is read unless a rule asks for it, and foreign values do no harm.
func TestUnwantedAndForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := &memory{}, new(bytes.Buffer)
		now := HourOf(time.Now())
		_ = store.Write(t.Context(), now-24, "x", []byte("foreign"))
		_ = store.Write(t.Context(), now-24, "y", hourWith(now, hourSeconds, 1, 1).Append(nil))
		_ = store.Write(t.Context(), now-24, "z", hourWith(now-24, hourSeconds, 1, 5).Append(nil))
		d := NewDays("statsd")
		k, stop := runKeeper(t, d, store, inOffice(), log)
		defer stop()
		time.Sleep(3 * keepEvery)
		synctest.Wait()
		if store.reads > 0 {
			t.Errorf("%d reads", store.reads)
		}
		d.Want()
		time.Sleep(keepEvery)
		synctest.Wait()
		if r, ok := d.Reference(now, testRule, 1); !ok || r.Low != 5 || k.Stats().Unreadable < 2 {
			t.Errorf("%+v, %t, %+v", r, ok, k.Stats())
		}
	})
}
