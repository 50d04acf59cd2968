package rules

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLimitValidate(t *testing.T) {
	rate := Quota{Rate: Rate{5, time.Second}}.WithDefaults()
	with := func(change func(*Limit)) Limit {
		l := Limit{Quota: rate, Mode: ModeLimit}
		change(&l)
		return l
	}
	window := func(a Algorithm) func(*Limit) {
		return func(l *Limit) { l.Quota = Quota{Algorithm: a, Rate: Rate{5, 24 * time.Hour}}.WithDefaults() }
	}
	for _, c := range []struct {
		name  string
		unit  Unit
		limit Limit
		field string // the field at fault; empty if the limit is valid
	}{
		{"default", Requests, with(func(*Limit) {}), ""},
		{"no rate", Requests, Limit{Mode: ModeLimit}, "rate"},
		{"B2: rate 0", Requests, with(func(l *Limit) { l.Rate.N = 0 }), "rate"},
		{"per 0", Requests, with(func(l *Limit) { l.Rate.Per = 0 }), "rate"},
		{"rate negative", Requests, with(func(l *Limit) { l.Rate.N = -1 }), "rate"},
		{"a rate of -1 is not unlimited", Requests, with(func(l *Limit) { l.Quota = Quota{Rate: Rate{-1, time.Second}}.WithDefaults() }), "rate"},
		{"nor is a window of -1", Requests, with(func(l *Limit) {
			l.Quota = Quota{Algorithm: SlidingLog, Rate: Rate{-1, time.Second}}.WithDefaults()
		}), "rate"},
		{"burst negative", Requests, with(func(l *Limit) { l.Burst = -2 }), "burst"},
		{"A5: unlimited", Requests, with(func(l *Limit) { l.Quota = Quota{Burst: Unlimited} }), ""},
		{"concurrency alone", Requests, Limit{Mode: ModeLimit, Concurrency: 8}, ""},
		{"F7: concurrency negative", Requests, Limit{Mode: ModeLimit, Concurrency: -1}, "concurrency"},
		{"concurrency and a bad rate", Requests, Limit{Mode: ModeLimit, Concurrency: 8, Quota: Quota{Burst: 5}}, "rate"},
		{"unknown algorithm", Requests, with(func(l *Limit) { l.Algorithm = "magic" }), "algorithm"},
		{"own algorithm", Requests, with(func(l *Limit) { l.Algorithm = "x_magic" }), ""},
		{"own algorithm of no name", Requests, with(func(l *Limit) { l.Algorithm = "x_Ma gic" }), "algorithm"},
		{"window", Requests, with(window(FixedWindow)), ""},
		{"window with burst", Requests, with(func(l *Limit) { l.Algorithm, l.Burst = SlidingBlocks, 7 }), "burst"},
		{"long log", Requests, with(func(l *Limit) {
			l.Quota = Quota{Algorithm: SlidingLog, Rate: Rate{MaxLog + 1, time.Minute}}.WithDefaults()
		}), "rate"},
		{"missing", Requests, with(func(l *Limit) { l.Missing = 5 }), ""},
		{"more missing than there is", Requests, with(func(l *Limit) { l.Missing = 6 }), "initial"},
		{"missing of a window", Requests, with(func(l *Limit) { window(SlidingLog)(l); l.Missing = 1 }), "initial"},
		{"warm-up", Requests, with(func(l *Limit) { l.WarmUp, l.ColdFactor = time.Minute, 3 }), ""},
		{"warm-up of a window", Requests, with(func(l *Limit) { window(SlidingLog)(l); l.WarmUp = 1 }), "warm_up"},
		{"long warm-up", Requests, with(func(l *Limit) { l.WarmUp = maxWarmUp + 1 }), "warm_up"},
		{"warm-up and missing", Requests, with(func(l *Limit) { l.WarmUp, l.ColdFactor, l.Missing = time.Minute, 3, 1 }), "warm_up"},
		{"cold without warm-up", Requests, with(func(l *Limit) { l.ColdFactor = 3 }), "cold_factor"},
		{"not cold", Requests, with(func(l *Limit) { l.WarmUp, l.ColdFactor = time.Minute, 1 }), "cold_factor"},
		{"shape", Requests, with(func(l *Limit) { l.Algorithm, l.Shape, l.Mode, l.Wait = LeakyBucket, true, ModeWait, time.Second }), ""},
		{"shape of a token bucket", Requests, with(func(l *Limit) { l.Shape, l.Mode, l.Wait = true, ModeWait, time.Second }), "shape"},
		{"shape without waiting", Requests, with(func(l *Limit) { l.Algorithm, l.Shape = LeakyBucket, true }), "shape"},
		{"calendar", Requests, with(func(l *Limit) { window(FixedWindow)(l); l.Calendar, l.Zone = CalendarDay, "Europe/Berlin" }), ""},
		{"calendar of another length", Requests, with(func(l *Limit) { window(FixedWindow)(l); l.Calendar = CalendarWeek }), "calendar"},
		{"unknown calendar", Requests, with(func(l *Limit) { window(FixedWindow)(l); l.Calendar = "fortnight" }), "calendar"},
		{"calendar of a log", Requests, with(func(l *Limit) { window(SlidingLog)(l); l.Calendar = CalendarDay }), "calendar"},
		{"zone alone", Requests, with(func(l *Limit) { window(FixedWindow)(l); l.Zone = "UTC" }), "zone"},
		{"no such zone", Requests, with(func(l *Limit) { window(FixedWindow)(l); l.Calendar, l.Zone = CalendarDay, "Mars/Olympus" }), "zone"},
		{"blocks of a log", Requests, with(func(l *Limit) { window(SlidingLog)(l); l.Blocks = 5 }), "blocks"},
		{"many blocks", Requests, with(func(l *Limit) { window(SlidingBlocks)(l); l.Blocks = MaxBlocks + 1 }), "blocks"},
		{"count denied", Requests, with(func(l *Limit) { window(SlidingBlocks)(l); l.CountDenied = true }), ""},
		{"count denied of a bucket", Requests, with(func(l *Limit) { l.CountDenied = true }), "count_denied"},
		{"penalty", Requests, with(func(l *Limit) { l.Penalty = time.Minute }), ""},
		{"penalty negative", Requests, with(func(l *Limit) { l.Penalty = -1 }), "penalty"},
		{"wait", Requests, with(func(l *Limit) { l.Mode, l.Wait = ModeWait, time.Second }), ""},
		{"wait for ever", Requests, with(func(l *Limit) { l.Mode, l.Wait = ModeWait, maxWait+1 }), "wait"},
		{"wait without a time", Requests, with(func(l *Limit) { l.Mode = ModeWait }), "wait"},
		{"wait and reject", Requests, with(func(l *Limit) { l.Wait = time.Second }), "wait"},
		{"queue without concurrency", Requests, with(func(l *Limit) { l.Mode, l.Wait, l.Queue = ModeWait, time.Second, 5 }), "queue"},
		{"queue negative", Requests, Limit{Mode: ModeWait, Wait: time.Second, Concurrency: 1, Queue: -1}, "queue"},
		{"scope", Requests, with(func(l *Limit) { l.Scope, l.Outage = ScopeExact, OutageOpen }), ""},
		{"no such scope", Requests, with(func(l *Limit) { l.Scope = "galaxy" }), "scope"},
		{"no such away", Requests, with(func(l *Limit) { l.Scope, l.Outage = ScopeExact, "shut" }), "when_redis_is_away"},
		{"away of an instance", Requests, with(func(l *Limit) { l.Outage = OutageOpen }), "when_redis_is_away"},
		{"priority", Requests, with(func(l *Limit) { l.Priority = &Priority{Name: "tier", First: []string{"gold"}} }), ""},
		{"priority of nobody", Requests, with(func(l *Limit) { l.Priority = &Priority{Name: "tier"} }), "priority"},
		{"priority by nothing", Requests, with(func(l *Limit) { l.Priority = &Priority{First: []string{"gold"}} }), "priority"},
		{"serve", Requests, with(func(l *Limit) { l.Mode, l.Serve = ModeServe, &Response{Status: 200} }), ""},
		{"serve and reject", Requests, with(func(l *Limit) { l.Serve = &Response{Status: 200} }), "serve"},
		{"serve no status", Requests, with(func(l *Limit) { l.Mode, l.Serve = ModeServe, &Response{} }), "serve.status"},
		{"serve a book", Requests, with(func(l *Limit) {
			l.Mode, l.Serve = ModeServe, &Response{Status: 200, Body: strings.Repeat("x", maxAnswer+1)}
		}), "serve.body"},
		{"mode", Requests, with(func(l *Limit) { l.Mode = ModeWatch }), "on_limit"},
		{"bytes", Bytes, with(func(*Limit) {}), ""},
		{"wait for bytes", Bytes, with(func(l *Limit) { l.Mode, l.Wait = ModeWait, time.Second }), "wait"},
		{"bytes by Redis", Bytes, with(func(l *Limit) { l.Scope = ScopeExact }), "scope"},
		{"penalty for bytes", Millis, with(func(l *Limit) { l.Penalty = 1 }), "penalty"},
		{"bytes that were denied", Units, with(func(l *Limit) { window(SlidingLog)(l); l.CountDenied = true }), "count_denied"},
		{"bytes by turns", Bytes, Limit{Mode: ModeWait, Wait: time.Second, Concurrency: 1}, ""},
	} {
		err := c.limit.validate(c.unit).err()
		var bad *FieldError
		switch {
		case c.field == "" && err == nil:
		case c.field == "" || !errors.As(err, &bad) || bad.Field != "limit."+c.field || !strings.HasPrefix(err.Error(), "limit."+c.field):
			t.Errorf("%s: %v, want the field %q to be blamed", c.name, err, c.field)
		}
	}
	if err := (*Limit)(nil).validate(Requests).err(); err != nil {
		t.Error(err)
	}
}

// Limiters validate quotas while requests wait.
func TestQuotaValidateDoesNotAllocate(t *testing.T) {
	for _, a := range Algorithms {
		q := Quota{Algorithm: a, Rate: Rate{5, time.Second}}.WithDefaults()
		if n := testing.AllocsPerRun(100, func() { _ = q.Validate() }); n != 0 {
			t.Errorf("%s: %v allocations", a, n)
		}
	}
}

func TestLimitPublished(t *testing.T) {
	type told struct {
		rate  Rate
		burst int64
		mode  Mode
	}
	five := Rate{5, time.Second}
	for _, c := range []struct {
		limit *Limit
		want  told
	}{
		{nil, told{mode: ModeWatch}},
		{&Limit{Quota: Quota{Burst: Unlimited}, Mode: ModeLimit}, told{mode: ModeWatch}},
		{&Limit{Quota: Quota{Burst: Unlimited}, Concurrency: 3, Mode: ModeWait}, told{mode: ModeWait}},
		{&Limit{Concurrency: 3, Mode: ModeWait}, told{mode: ModeWait}},
		{&Limit{Quota: Quota{Rate: five, Burst: 9}, Mode: ModeServe}, told{five, 9, ModeServe}},
	} {
		rate, burst, mode := c.limit.Published()
		if got := (told{rate, burst, mode}); got != c.want {
			t.Errorf("%+v is published as %+v, want %+v", c.limit, got, c.want)
		}
	}
}
