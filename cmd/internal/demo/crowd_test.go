package demo

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Up to its rate the database answers at once. Beyond it, requests queue, and requests that would
// wait too long get no answer.
func TestDatabase(t *testing.T) {
	for rate, want := range map[int]struct {
		median time.Duration
		failed bool
	}{databaseRate - 1: {databaseTime, false}, 2 * databaseRate: {databasePatience, true}} {
		synctest.Test(t, func(t *testing.T) {
			var d database
			var all latencies
			done := make(chan struct{})
			const seconds = 3
			for range rate * seconds {
				go func() {
					at := time.Now()
					ok := d.query(t.Context())
					all.add(answerTime{answered: time.Now(), took: time.Since(at), failed: !ok}, true)
					done <- struct{}{}
				}()
				time.Sleep(time.Second / time.Duration(rate))
			}
			for range rate * seconds {
				<-done
			}
			l := all.ofCrowds()
			if median := time.Duration(*l.P50 * float64(time.Millisecond)); median < want.median || median > want.median+databaseTime {
				t.Errorf("%d/s: %s, want %s", rate, median, want.median)
			}
			if (l.Failed > 0) != want.failed || l.Requests != rate*seconds {
				t.Errorf("%d/s: %.2f of %d got no answer", rate, l.Failed, l.Requests)
			}
			if now := all.recentLatency(time.Now().Add(time.Hour)); now.P50 != nil || now.Failed != 0 {
				t.Errorf("after an hour: %+v", now)
			}
		})
	}
}

func TestDatabaseIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (&database{}).query(ctx) {
		t.Error("an answer for nobody")
	}
}

// A crowd sends at its rate while it lasts, can be continued, and can be ended.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrowd()
		var sent atomic.Int64
		over := make(chan struct{})
		go func() {
			c.run(ctx, func() { sent.Add(1) })
			close(over)
		}()
		check := func(after time.Duration, low, high int64) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if n := sent.Load(); n < low || n > high {
				t.Errorf("%d requests, want %d to %d", n, low, high)
			}
		}
		check(time.Minute, 0, 0)
		c.start(2 * time.Second)
		check(500*time.Millisecond, 240, 251)
		if at := time.Now(); c.isMeasured(at) || !c.isMeasured(at.Add(time.Second)) || c.remaining(at) != 1500*time.Millisecond {
			t.Error("measured too soon or not at all")
		}
		check(9500*time.Millisecond, 990, 1010)
		if at := time.Now(); c.isMeasured(at) || c.remaining(at) != 0 {
			t.Error("it does not end")
		}
		c.start(time.Hour)
		check(time.Second, 1480, 1515)
		c.stop()
		check(time.Minute, 1480, 1520)
		cancel()
		<-over
	})
}

// The crowd is limited, and the others are measured with limits and without. How long they take
// is not compared: a busy machine delays both.
func TestFlashCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	d, err := New(t.Context(), StatsD, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	d.StartCrowd(time.Minute)
	go func() {
		defer cancel()
		const enough = 200
		measured := func(s *requestSender) int { return min(s.others.ofCrowds().Requests, s.crowds.ofCrowds().Requests) }
		for slices.ContainsFunc(d.traffic.senders[:], func(s *requestSender) bool { return measured(s) < enough }) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r := d.Result()
	if !slices.ContainsFunc(r.Hot, func(h HotResult) bool { return h.Key == CrowdKey && h.Limited > 100 }) {
		t.Errorf("%s was not limited: %+v", CrowdKey, r.Hot)
	}
	c := r.Crowd
	if c == nil {
		t.Fatal("no effects")
	}
	for v, e := range c.Effects() {
		if e.P50 == nil || e.Calls == 0 || e.Crowd.Requests == 0 {
			t.Errorf("%s: %+v", Variant(v), e)
		}
	}
	// on_hot serves the crowd, and asks the database less often than the crowd asks. Shares of a
	// busy machine are not compared closer.
	if refused := c.Limits.Crowd.Refused; refused < 0.5 {
		t.Errorf("limits refuse %.2f of the crowd", refused)
	}
	if c.OnHot.Crowd.Refused > 0.5 || c.OnHot.Crowd.Served() < 0.5 {
		t.Errorf("on_hot refuses %.2f of the crowd, and serves %.2f", c.OnHot.Crowd.Refused, c.OnHot.Crowd.Served())
	}
	var stored int64
	for _, a := range d.apis[WithOnHot] {
		for _, s := range a.answers.Stats() {
			stored += s.Requests["hit"] + s.Requests["stale"] + s.Requests["joined"]
		}
	}
	if stored < 100 {
		t.Errorf("%d requests were answered together", stored)
	}
}
