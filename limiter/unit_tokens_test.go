package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// unitTokens is the bucket of articles on rate limiting. It is full at first. At the end of each
// unit of time all its tokens are added at once, and any that do not fit are lost.
type unitTokens struct {
	inflow, capacity int64 // tokens
	unit             time.Duration
	ended            int64 // units that have ended
	tokens           int64
}

func newUnitTokens(inflow, capacity int64, unit time.Duration) *unitTokens {
	return &unitTokens{inflow: inflow, capacity: capacity, unit: unit, ended: time.Now().UnixNano() / int64(unit), tokens: capacity}
}

func (b *unitTokens) take(n int64) bool {
	for end := time.Now().UnixNano() / int64(b.unit); b.ended < end; b.ended++ {
		b.tokens = min(b.capacity, b.tokens+b.inflow)
	}
	if n > b.tokens {
		return false
	}
	b.tokens -= n
	return true
}

// A calendar window makes the same decisions as the bucket that gets a unit's tokens at once, if
// the bucket holds at most a unit's tokens. If it holds fewer, the window has as many.
func TestCalendarWindowIsTokensByTheUnit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			calendar := rapid.SampledFrom([]rules.Calendar{rules.CalendarSecond, rules.CalendarMinute}).Draw(rt, "calendar")
			unit := rules.CalendarPeriods[calendar]
			inflow := rapid.Int64Range(1, 20).Draw(rt, "inflow")
			capacity := rapid.Int64Range(1, inflow).Draw(rt, "capacity")
			time.Sleep(time.Duration(rapid.Int64Range(0, int64(unit)).Draw(rt, "start")))
			memory, err := limiter.NewMemory(limiter.MemoryConfig{})
			if err != nil {
				rt.Fatal(err)
			}
			ours, err := limiter.New(memory, "units", rules.Quota{
				Algorithm: rules.FixedWindow, Calendar: calendar, Rate: rules.Rate{N: capacity, Per: unit},
			})
			if err != nil {
				rt.Fatal(err)
			}
			bucket := newUnitTokens(inflow, capacity, unit)
			for range rapid.IntRange(1, 200).Draw(rt, "requests") {
				n := rapid.Int64Range(1, capacity).Draw(rt, "n")
				d, err := ours.AllowN(context.Background(), "k", n)
				if err != nil {
					rt.Fatal(err)
				}
				if want := bucket.take(n); d.Allowed != want {
					rt.Fatalf("%d of %d at %v: %v, want %v", n, capacity, time.Now(), d.Allowed, want)
				}
				switch rapid.IntRange(0, 2).Draw(rt, "pause") {
				case 0:
					time.Sleep(time.Duration(rapid.Int64Range(0, 3*int64(unit)).Draw(rt, "long")))
				case 1: // up to the border, which belongs to the next unit
					time.Sleep(time.Duration((time.Now().UnixNano()/int64(unit)+1)*int64(unit) - time.Now().UnixNano() - rapid.Int64Range(0, 1).Draw(rt, "before")))
				}
			}
		})
	})
}

// A bucket that holds more than a unit's tokens is token_bucket with that burst, which adds its
// tokens one by one. Over any span token_bucket admits at most burst + rate × span. Tokens by the
// unit exceed that by up to one unit's tokens.
func TestTokenBucketIsStricterThanTokensByTheUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const inflow, capacity = 10, 25
		unit := time.Second
		memory, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ours, err := limiter.New(memory, "bucket", rules.Quota{
			Algorithm: rules.TokenBucket, Rate: rules.Rate{N: inflow, Per: unit}, Burst: capacity,
		})
		if err != nil {
			t.Fatal(err)
		}
		bucket := newUnitTokens(inflow, capacity, unit)
		time.Sleep(unit - time.Millisecond)
		passed := map[string]int{}
		for range 2 { // a crowd just before the unit's end, and just after
			for range 100 {
				if d, err := ours.AllowN(context.Background(), "k", 1); err != nil {
					t.Fatal(err)
				} else if d.Allowed {
					passed["token_bucket"]++
				}
				if bucket.take(1) {
					passed["by the unit"]++
				}
			}
			time.Sleep(time.Millisecond)
		}
		if passed["token_bucket"] != capacity || passed["by the unit"] != capacity+inflow {
			t.Errorf("passed %v, want %d and %d", passed, capacity, capacity+inflow)
		}
	})
}
