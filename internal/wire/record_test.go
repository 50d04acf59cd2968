package wire

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The values of Kafka's own tests of murmur2 (UtilsTest.testMurmur2).
func TestMurmur2IsKafkas(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string":                       -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestPartitionIsInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, n := rapid.SliceOf(rapid.Byte()).Draw(t, "key"), rapid.IntRange(1, maxPartitions).Draw(t, "n")
		if p := Partition(key, n); p < 0 || int(p) >= n {
			t.Fatalf("Partition(%q, %d) = %d", key, n, p)
		}
	})
}

var goldenHead = RecordHead{
	Meta: Meta{
		Instance: []byte("web-1"), Incarnation: 0xdeadbeef, Seq: 7, Start: 1_700_000_000_000_000_000,
		Held: 3, Unsent: 12, Aged: 5, Sent: 1_700_000_000_100_000_000,
		Sums: Sums{Stated: true, Booked: 10, Loose: 11, Opened: 12, Shed: 1, Parts: 2, Age: 1, Since: 31, HeldBack: 7}, Groups: 0xbeef,
	},
	Namespace: []byte("shop"), Partitions: 12,
}

func TestRecordHeadGolden(t *testing.T) {
	want := []Header{
		{"hotparam-schema", []byte("1")}, {"hotparam-namespace", []byte("shop")}, {"hotparam-instance", []byte("web-1")},
		{"hotparam-incarnation", []byte("deadbeef")}, {"hotparam-sequence", []byte("7")},
		{"hotparam-start", []byte("1700000000000000000")}, {"hotparam-held", []byte("3")}, {"hotparam-unsent", []byte("12")},
		{"hotparam-partitions", []byte("12")}, {"hotparam-aged", []byte("5")}, {"hotparam-sent", []byte("1700000000100000000")}, {"hotparam-groups", []byte("beef")}, {"hotparam-sums", []byte("a.b.c.1.2.1.1f.7")},
	}
	if got := AppendRecordHead(nil, &goldenHead); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRecordHeadRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, math.MaxInt64)
		head := RecordHead{
			Meta: Meta{
				Instance:    []byte(rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`).Draw(t, "instance")),
				Incarnation: rapid.Uint64().Draw(t, "incarnation"), Seq: rapid.Uint64Range(1, math.MaxUint64).Draw(t, "seq"),
				Start: number.Draw(t, "start"), Held: rapid.Int64Range(1, math.MaxInt64).Draw(t, "held"),
				Unsent: number.Draw(t, "unsent"), Aged: number.Draw(t, "aged"), Sent: number.Draw(t, "sent"),
			},
			Namespace:  []byte(rapid.StringMatching(`[A-Za-z0-9_-]{1,20}`).Draw(t, "namespace")),
			Partitions: rapid.IntRange(1, maxPartitions).Draw(t, "partitions"),
		}
		headers := append([]Header{{"traceparent", []byte("x")}}, AppendRecordHead(nil, &head)...)
		got, ours, err := ParseRecordHead(headers)
		if err != nil || !ours || !reflect.DeepEqual(got, head) {
			t.Fatalf("got %+v, %v, %v, want %+v", got, ours, err, head)
		}
	})
}

func TestParseRecordHeadBad(t *testing.T) {
	if _, ours, err := ParseRecordHead([]Header{{"traceparent", nil}}); ours || err != nil {
		t.Errorf("another program's headers: ours %v, %v", ours, err)
	}
	good := AppendRecordHead(nil, &goldenHead)
	for i := range good[:9] {
		headers := append(append([]Header(nil), good[:i]...), good[i+1:]...)
		if _, ours, err := ParseRecordHead(headers); !ours || !errors.Is(err, ErrHead) {
			t.Errorf("without %s: ours %v, %v, want %v", good[i].Key, ours, err, ErrHead)
		}
	}
	for key, value := range map[string]string{
		"hotparam-schema": "2", "hotparam-instance": "a b", "hotparam-sequence": "0", "hotparam-held": "0",
		"hotparam-start": "-1", "hotparam-partitions": "0", "hotparam-unsent": "x", "hotparam-aged": "99999999999999999999", "hotparam-sent": "-1",
	} {
		headers := append([]Header(nil), good...)
		for i := range headers {
			if headers[i].Key == key {
				headers[i].Value = []byte(value)
			}
		}
		if _, _, err := ParseRecordHead(headers); !errors.Is(err, ErrHead) {
			t.Errorf("%s %q: %v, want %v", key, value, err, ErrHead)
		}
	}
}

func FuzzParseRecordHead(f *testing.F) {
	f.Add("hotparam-schema", []byte("1"), "hotparam-sequence", []byte("18446744073709551615"))
	f.Add("hotparam-partitions", []byte("1048577"), "x", []byte{})
	f.Fuzz(func(t *testing.T, k1 string, v1 []byte, k2 string, v2 []byte) {
		headers := append(AppendRecordHead(nil, &goldenHead), Header{k1, v1}, Header{k2, v2})
		h, ours, err := ParseRecordHead(headers)
		if !ours {
			t.Fatal("not ours")
		}
		if err == nil && (h.Seq == 0 || h.Held < 1 || h.Partitions < 1 || h.Partitions > maxPartitions) {
			t.Fatalf("%+v", h)
		}
	})
}
