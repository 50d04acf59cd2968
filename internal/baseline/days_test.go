package baseline

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// counted holds the counts of one part in one hour, in the form of the test.
type counted struct {
	hour    int64
	part    string
	seconds int64
	floor   int64
	keys    map[uint64]int64
}

// exactReference returns the documented reference over all counts, in big numbers, without
// quantities, floors or hashes.
func exactReference(all []counted, hour int64, key uint64) (*big.Rat, int) {
	perHour := func(number int64) *big.Rat {
		var sum *big.Rat
		for _, c := range all {
			if c.hour == number && c.seconds >= 15*60 {
				if sum == nil {
					sum = new(big.Rat)
				}
				sum.Add(sum, big.NewRat(c.keys[key]*3600, c.seconds))
			}
		}
		return sum
	}
	var days []*big.Rat
	for day := int64(1); day <= 7; day++ {
		most := perHour(hour - 24*day)
		if most == nil {
			continue
		}
		for _, next := range []int64{hour - 24*day - 1, hour - 24*day + 1} {
			if n := perHour(next); n != nil && n.Cmp(most) > 0 {
				most = n
			}
		}
		days = append(days, most)
	}
	if len(days) == 0 {
		return nil, 0
	}
	for _, n := range days {
		below, above := 0, 0
		for _, other := range days {
			switch n.Cmp(other) {
			case 1:
				below++
			case -1:
				above++
			}
		}
		// At least half of the days are as high, and more than half are as low.
		if 2*below < len(days) && 2*above <= len(days) {
			return n, len(days)
		}
	}
	panic("no median")
}

// Over random weeks, with several parts that count some hours in part and some not at all, the
// reference of a key is never below the exact one. It is above it by no more than the floor and
// the quantity. A key is in one part an hour.
func TestReferenceAgainstTheExactOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hour := monday + rapid.Int64Range(0, 24).Draw(t, "hour")
		parts := rapid.IntRange(1, 3).Draw(t, "parts")
		d := NewDays("own")
		var all []counted
		for day := int64(0); day <= 8; day++ {
			for _, next := range []int64{-2, -1, 0, 1, 2} {
				number := hour - 24*day + next
				owners := make(map[uint64]int)
				for part := range parts {
					if rapid.IntRange(0, 5).Draw(t, "away") == 0 {
						continue
					}
					c := counted{
						hour: number, part: fmt.Sprint(part), keys: make(map[uint64]int64),
						seconds: rapid.SampledFrom([]int64{3600, 3600, 3600, 1800, 901, 900, 899, 10}).Draw(t, "seconds"),
						floor:   rapid.Int64Range(1, 50).Draw(t, "floor"),
					}
					for range rapid.IntRange(0, 6).Draw(t, "keys") {
						key := rapid.Uint64Range(0, 9).Draw(t, "key")
						if owner, ok := owners[key]; !ok || owner == part {
							owners[key] = part
							c.keys[key] = rapid.Int64Range(1, 100_000).Draw(t, "n")
						}
					}
					all = append(all, c)
					d.Merge(c.part, &Hour{Number: number, Rules: []RuleHour{NewRuleHour(testRule, c.seconds, c.floor, listOf(c.keys, c.floor), 100)}})
				}
			}
		}
		for key := range uint64(10) {
			got, ok := d.Reference(hour, testRule, key)
			want, days := exactReference(all, hour, key)
			if !ok {
				got.Days = 0
			}
			if got.Days != days {
				t.Fatalf("key %d: %d days, want %d", key, got.Days, days)
			}
			if want == nil {
				continue
			}
			floor := big.NewRat(49*4+1, 1) // of a quarter of an hour, rounded up
			most := new(big.Rat).Mul(want, big.NewRat(1025, 1024))
			most.Add(most, floor)
			least := new(big.Rat).Sub(want, floor)
			low, high := new(big.Rat).SetInt64(got.Low), new(big.Rat).SetInt64(got.High)
			if high.Cmp(want) < 0 || high.Cmp(most) > 0 || low.Cmp(least) < 0 || low.Cmp(high) > 0 {
				t.Fatalf("key %d counted %s, said to be %d to %d", key, want.FloatString(2), got.Low, got.High)
			}
		}
	})
}

// Without any day there is no reference, and rules that count different things share none.
func TestNothingIsKnownOnTheFirstDay(t *testing.T) {
	d := NewDays("own")
	for hour := monday; hour < monday+24; hour++ {
		if _, ok := d.Reference(hour, testRule, 1); ok {
			t.Fatalf("hour %d has a reference", hour-monday)
		}
		d.Put(0, 1, hourWith(hour, hourSeconds, 1, 100))
	}
	if r, ok := d.Reference(monday+24, testRule, 1); !ok || r != (Reference{100, 100, 1}) {
		t.Fatalf("on the second day %v, %t", r, ok)
	}
	if _, ok := d.Reference(monday+24, testRule+1, 1); ok {
		t.Fatal("another rule has a reference")
	}
}

// Memory stays bounded however long the program runs, and whatever other parts bring.
func TestDaysAreBounded(t *testing.T) {
	d := NewDays("own")
	keys := make([]KeyCount, MaxKeys)
	for i := range keys {
		keys[i] = KeyCount{uint64(i), 1}
	}
	full := NewRuleHour(testRule, hourSeconds, 1, keys, MaxKeys)
	for hour := monday; hour < monday+2*Kept; hour++ {
		for part := range 10 {
			d.Merge(fmt.Sprint(part), &Hour{Number: hour, Rules: []RuleHour{full}})
		}
	}
	if s := d.Size(); s.Hours != Kept || s.Keys != Kept*maxHourKeys || s.Refused != 2*2*Kept {
		t.Fatalf("%+v", s)
	}
	d.Put(0, 1, hourWith(monday, hourSeconds, 1, 1))
	if s := d.Size(); s.Hours != Kept || s.Unsaved != 0 {
		t.Fatalf("an old hour was kept: %+v", s)
	}
}

// The longer of two records of one part and hour is kept.
func TestTheLongerHourIsKept(t *testing.T) {
	for _, order := range [][]int64{{1700, 1800}, {1800, 1700}} {
		d := NewDays("own")
		for _, seconds := range order {
			d.Merge("x", hourWith(monday, seconds, 1, seconds))
		}
		if h := d.hourAt(partHour{monday, "x"}); h.seconds() != 1800 {
			t.Errorf("%v: %d s are kept", order, h.seconds())
		}
	}
}
