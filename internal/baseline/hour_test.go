package baseline

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func drawKeys(t *rapid.T) map[uint64]int64 {
	return rapid.MapOfN(rapid.Uint64Range(0, 500), rapid.Int64Range(1, 1<<40), 0, 60).Draw(t, "keys")
}

func listOf(keys map[uint64]int64, from int64) (list []KeyCount) {
	for hash, n := range keys {
		if n >= from {
			list = append(list, KeyCount{hash, n})
		}
	}
	return list
}

// However many keys an hour has room for, no key counted more than its record, and the count of a
// listed key is right up to the quantity.
func TestAnHourIsNeverBelowTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := drawKeys(t)
		floor := rapid.Int64Range(1, 1000).Draw(t, "floor")
		room := rapid.IntRange(0, 80).Draw(t, "room")
		r := NewRuleHour(testRule, hourSeconds, floor, listOf(keys, floor), room)
		if len(r.hashes) > room {
			t.Fatalf("%d keys in room for %d", len(r.hashes), room)
		}
		for hash := range uint64(520) {
			low, high, listed := r.bounds(hash)
			truth := keys[hash]
			if high < truth || listed && (low-truth > truth/1024 || low != high) || !listed && low != 0 {
				t.Fatalf("key %d counted %d, and is said to have counted %d to %d", hash, truth, low, high)
			}
		}
		if len(listOf(keys, floor)) <= room && r.Floor != floor {
			t.Fatalf("floor %d, want %d", r.Floor, floor)
		}
	})
}

// An hour that was counted in part is scaled, rounded up.
func TestPartsOfHoursAreScaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(1, hourSeconds).Draw(t, "seconds")
		n := rapid.Int64Range(0, 1<<45).Draw(t, "n")
		r := RuleHour{Seconds: seconds}
		// n × 3600 fits.
		if got, want := r.scale(n), (n*3600+seconds-1)/seconds; got != want {
			t.Fatalf("%d in %d s are %d in an hour, want %d", n, seconds, got, want)
		}
	})
}

func TestHoursAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &Hour{Number: rapid.Int64Range(-1000, 1<<40).Draw(t, "number")}
		for rule := range rapid.Uint64Range(0, 4).Draw(t, "rules") {
			h.Rules = append(h.Rules, NewRuleHour(rule, rapid.Int64Range(1, hourSeconds).Draw(t, "seconds"), 3, listOf(drawKeys(t), 3), 1000))
		}
		value := h.Append(nil)
		read, err := Parse(value)
		if err != nil {
			t.Fatal(err)
		}
		if again := read.Append(nil); !reflect.DeepEqual(again, value) {
			t.Fatalf("%x was read as %x", value, again)
		}
		cut := rapid.IntRange(0, len(value)-1).Draw(t, "cut")
		if _, err := Parse(value[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were read", cut, len(value))
		}
		if _, err := Parse(append(value, 0)); err == nil {
			t.Fatal("a byte too many was read")
		}
	})
}

// Foreign values of any form are refused.
func TestForeignBytesAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := hourWith(monday, 1000, 5, 10).Append(nil)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		if h, err := Parse(b); err == nil {
			for i := range h.Rules {
				h.Rules[i].bounds(5)
			}
		}
		if _, err := Parse(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")); err == nil {
			t.Skip()
		}
	})
}
