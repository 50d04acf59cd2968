package wire_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

func TestBucketsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mark, number := rapid.Uint32Min(1).Draw(t, "mark"), rapid.Uint64().Draw(t, "number")
		var sums, got [wire.Buckets]uint32
		for i := range sums {
			sums[i] = rapid.Uint32().Draw(t, "sum")
		}
		states, stated := rapid.Bool().Draw(t, "states"), (*[wire.Buckets]uint32)(nil)
		if states {
			stated = &sums
		}
		text := wire.AppendBuckets(nil, mark, number, stated)
		read, err := wire.ParseMeta(wire.AppendMeta(nil, wire.Meta{Instance: []byte("i"), Seq: 1, Held: 1, Buckets: text}))
		if err != nil || string(read.Buckets) != string(text) {
			t.Fatalf("%q reads %+v, %v", text, read, err)
		}
		n, told, ok := wire.ParseBuckets(&got, text, mark)
		if n != number || told != states || !ok {
			t.Fatalf("%q reads %d, %v, %v", text, n, told, ok)
		}
		for i := range sums {
			if states && got[i] != sums[i]%wire.BucketModulus {
				t.Fatalf("sum %d is %d, want %d", i, got[i], sums[i])
			}
		}
		if _, _, ok := wire.ParseBuckets(&got, text, mark+1); ok {
			t.Fatalf("%q is read as of other rules", text)
		}
		if _, _, ok := wire.ParseBuckets(&got, text[:len(text)-1], mark); ok && states {
			t.Fatalf("%q is read though it is cut", text)
		}
	})
}

func FuzzParseBuckets(f *testing.F) {
	var sums [wire.Buckets]uint32
	f.Add(wire.AppendBuckets(nil, 0xbeef, 7, &sums))
	f.Add([]byte("beef.7"))
	f.Fuzz(func(t *testing.T, text []byte) {
		number, stated, ok := wire.ParseBuckets(&sums, text, 0xbeef)
		if !ok || !stated {
			return
		}
		again := [wire.Buckets]uint32{}
		if n, _, ok := wire.ParseBuckets(&again, wire.AppendBuckets(nil, 0xbeef, number, &sums), 0xbeef); !ok || n != number || again != sums {
			t.Errorf("%q reads %d, and that %d", text, sums, again)
		}
	})
}

// Keys that an attacker counts up are spread over all buckets, and keys that share a bucket of
// one sender do not share one of the next.
func TestBucketsSpread(t *testing.T) {
	const keys = 100 * wire.Buckets
	var of [wire.Buckets]int
	together, both := 0, 0
	victim := wire.BucketHash([]byte("GET /s?q=victim"))
	for i := range keys {
		hash := wire.BucketHash(fmt.Appendf(nil, "GET /s?q=invented%d", i))
		of[wire.BucketOf(hash, 1)]++
		if wire.BucketOf(hash, 1) == wire.BucketOf(victim, 1) {
			together++
			if wire.BucketOf(hash, 2) == wire.BucketOf(victim, 2) {
				both++
			}
		}
	}
	for bucket, n := range of {
		if n < 50 || n > 150 {
			t.Errorf("%d of %d keys are in bucket %d", n, keys, bucket)
		}
	}
	if together == 0 || both > together/10 {
		t.Errorf("%d keys share the victim's bucket, %d of them that of another sender", together, both)
	}
}

func TestJumpsMark(t *testing.T) {
	rate := rules.Rate{N: 1, Per: time.Second}
	mark := func(kinds ...rules.ThresholdKind) uint32 {
		ruleset := &rules.Rules{Namespace: "shop"}
		for i, kind := range kinds {
			ruleset.Rules = append(ruleset.Rules, rules.Rule{ID: fmt.Sprint("r", i), Hot: []rules.Threshold{{Kind: kind, Rate: rate}}})
		}
		return wire.JumpsMark(ruleset)
	}
	if mark() != 0 || mark(rules.FixedRate) != 0 {
		t.Error("rules without a jump have a mark")
	}
	if a := mark(rules.Jump, rules.FixedRate); a == 0 || a != mark(rules.Jump) || a == mark(rules.FixedRate, rules.Jump) || a == mark(rules.Jump, rules.Jump) {
		t.Error("the mark does not tell rules with a jump apart")
	}
}
