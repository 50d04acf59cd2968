package redislimiter

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func packed(numbers ...float64) string { return string(appendNumbers(nil, numbers...)) }

func TestReadReply(t *testing.T) {
	r, now, err := readReply(packed(1_700_000_000_000_000, 1, 7, 0, 300_000, 5, 3, 42, 2, 0, 9, 10, 0, 0, 0, 3, 0, 0, 0, 0, 0, 77), 3)
	must(t, err)
	if now != 1_700_000_000_000_000 {
		t.Errorf("the time is %d", now)
	}
	for i, want := range []limiter.Result{
		{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 10, Remaining: 7, ResetAfter: 300 * time.Millisecond, Delay: 5 * time.Microsecond}, Taken: 3, Mark: 42, Receipt: limiter.Receipt{At: 1_700_000_000 * time.Second}},
		{Decision: rules.Decision{Reason: rules.ReasonLocked, Limit: 10, RetryAfter: 9 * time.Microsecond, ResetAfter: 10 * time.Microsecond}},
		{},
	} {
		got, about, again, err := r.result(i, now, 10)
		if err != nil || got != want || again != (i == 2) || again && about != 77 {
			t.Errorf("%d: %+v %d %t %v", i, got, about, again, err)
		}
	}
	for name, bad := range map[string]any{
		"nothing":       nil,
		"a number":      int64(1),
		"too short":     packed(1),
		"too long":      packed(1, 1, 0, 0, 0, 0, 0, 0, 0),
		"half a number": packed(1, 1, 0, 0, 0, 0, 0, 0)[1:],
		"a fraction":    packed(1, 1, 0, 0, 0, 0, 0, 0.5),
		"no number":     packed(1, 1, 0, 0, 0, 0, 0, math.NaN()),
		"infinite":      packed(1, 1, 0, 0, 0, 0, 0, math.Inf(1)),
		"below 0":       packed(1, 1, 0, -1, 0, 0, 0, 0),
		"inexact":       packed(1, 1, 0, 0, 0, 0, 0, 1<<54),
		"no such code":  packed(1, 4, 0, 0, 0, 0, 0, 0),
		"above limit":   packed(1, 1, 11, 0, 0, 0, 0, 0),
		"time below 0":  packed(-1, 1, 0, 0, 0, 0, 0, 0),
	} {
		if r, _, err := readReply(bad, 1); err == nil {
			if _, _, _, err = r.result(0, 0, 10); err == nil {
				t.Errorf("%s: it is read", name)
			}
		}
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add(packed(1, 1, 7, 0, 300_000, 5, 3, 42), int64(10))
	f.Add(packed(1, 3, 0, 0, 0, 0, 0, 77), int64(10))
	f.Add("", int64(0))
	f.Fuzz(func(t *testing.T, raw string, limit int64) {
		ops := len(raw) / numberSize / perOp
		all, now, err := readReply(raw, ops)
		if err != nil {
			return
		}
		if now < 0 {
			t.Fatalf("the time is %d", now)
		}
		for i := range ops {
			r, about, again, err := all.result(i, now, limit)
			if err != nil {
				continue
			}
			if about < 0 || again && r != (limiter.Result{}) {
				t.Fatalf("%+v, again about %d: %t", r, about, again)
			}
			if r.Remaining < 0 || r.Remaining > max(r.Limit, 0) || r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 || r.Taken < 0 || r.Mark < 0 || r.Allowed != (r.Reason == rules.ReasonWithin) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func FuzzReadCell(f *testing.F) {
	f.Add(make([]byte, 5*9), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, limit int64) {
		n, err := readCell(fuzzList(raw), limit)
		if err != nil {
			return
		}
		for _, kind := range []limiter.OpKind{limiter.Take, limiter.Peek} {
			op := limiter.Op{Quota: &rules.Quota{Rate: rate(1, time.Second), Burst: limit}, Request: limiter.Request{Kind: kind, N: 1}}
			if r := cellResult(&op, n); r.Limit != limit || r.Remaining < 0 || r.Remaining > limit || r.RetryAfter < 0 || r.ResetAfter < 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// fuzzList makes an answer from bytes. Each nine of them give a kind of value and a number.
func fuzzList(raw []byte) (list []any) {
	for ; len(raw) >= 9; raw = raw[9:] {
		n := int64(binary.LittleEndian.Uint64(raw[1:]))
		switch raw[0] {
		case 255:
			list = append(list, "text")
		case 254:
			list = append(list, nil)
		case 253:
			list = append(list, n)
		default:
			list = append(list, n%16)
		}
	}
	return list
}
