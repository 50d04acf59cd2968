package limitertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/limiter"
)

var keyCases = []namedCase{
	{"A4: a key is any bytes, braces and all, and as long as it likes", func(w *world) {
		q := bucket(perSecond(10), 5)
		long := strings.Repeat("k", 64<<10)
		var keys []*modelKey
		for _, text := range []string{
			"{", "}", "{}", "}{", "a{b}c", "a{}c", "{a}{b}", "{{a}}", "a", "b", " ", "a b", "a:b", "a/b", "\n", "\r\n", "\x00", "a\x00", "\xff\xfe",
			"é", "e\u0301", "$1", "%d", "*", "'; --", long, long + "x", "x" + long,
		} {
			keys = append(keys, w.keyNamed("limit", text, q))
		}
		for _, k := range keys {
			k.wantAllowed(k.take(3), 2) // each key has its own
		}
		for _, k := range keys {
			k.wantAllowed(k.take(2), 0)
			k.wantAnyDenial(k.take(1))
		}
	}},
	{"A4: a limit's name is any bytes, and does not run into the key", func(w *world) {
		q := bucket(perSecond(10), 5)
		for _, x := range [][2]string{
			{"a", "bc"}, {"ab", "c"}, {"a/b", "c"}, {"a", "b/c"}, {"a:b", "c"}, {"a", "b:c"}, {"{a}", "b"}, {"a", "{b}"}, {"a\x00", "b"}, {"a", "\x00b"},
			{strings.Repeat("n", 1000), "k"},
		} {
			k := w.keyNamed(x[0], x[1], q)
			k.wantAllowed(k.take(5), 0)
			k.wantAnyDenial(k.take(1))
		}
	}},
	{"A8: an empty key and an empty name are errors", func(w *world) {
		k := w.key(bucket(perSecond(10), 5))
		k.wantAllowed(k.take(1), 4)
		for _, x := range [][2]string{{"", "key"}, {"limit", ""}, {"", ""}} {
			op := limiter.Op{Quota: k.quota, Name: x[0], Key: x[1], Request: take(1)}
			if _, err := w.backend.Do(context.Background(), op); !errors.Is(err, limiter.ErrNoKey) {
				w.Fatalf("name %q, key %q: error %v, want %v", x[0], x[1], err, limiter.ErrNoKey)
			}
			if b, ok := w.backend.(limiter.Batcher); ok {
				if err := b.DoAll(context.Background(), []limiter.Op{k.op, op}, make([]limiter.Result, 2)); !errors.Is(err, limiter.ErrNoKey) {
					w.Fatalf("name %q, key %q among others: error %v, want %v", x[0], x[1], err, limiter.ErrNoKey)
				}
			}
		}
	}},
}

var batchCases = []namedCase{
	{"G: many keys are asked for at once, each on its own", func(w *world) {
		var b askBatch
		for _, q := range oneOfEach(5) {
			for i := range 20 {
				b.add(w.keyNamed("limit", fmt.Sprint(i, describeQuota(&q)), q), take(int64(i%7)))
			}
		}
		b.send(w)
		b.send(w)
		w.sleep(sec)
		b.send(w)
	}},
	{"G: a batch asks for one key in its order", func(w *world) {
		for k := range w.oneOfEach(5) {
			other := w.keyNamed("other", describeQuota(k.quota), *k.quota)
			var b askBatch
			for _, n := range []int64{2, 4, 3, 1} {
				b.add(k, take(n))
				b.add(other, take(1))
			}
			b.add(k, limiter.Request{Kind: limiter.Forget})
			b.add(k, take(5))
			b.send(w)
		}
	}},
	{"G: a batch of none and one of a thousand", func(w *world) {
		var b askBatch
		b.send(w)
		for i := range 1000 {
			b.add(w.keyNamed("limit", fmt.Sprint(i), bucket(perSecond(10), 5)), take(2))
		}
		b.send(w)
	}},
}

// askBatch is a list of asks.
type askBatch struct {
	keys []*modelKey
	ops  []limiter.Op
}

func (b *askBatch) add(k *modelKey, ask limiter.Request) {
	op := k.op
	op.Request = ask
	b.keys, b.ops = append(b.keys, k), append(b.ops, op)
}

// send executes the batch and fails unless all results equal the model's.
func (b *askBatch) send(w *world) {
	w.Helper()
	batcher, ok := w.backend.(limiter.Batcher)
	if !ok {
		return
	}
	for _, op := range b.ops {
		if !w.config.supports(op.Quota, op.Kind) {
			w.t.Skipf("the backend does not support this: %s of %s", describeRequest(op.Request), describeQuota(op.Quota))
		}
	}
	results := make([]limiter.Result, len(b.ops))
	if err := batcher.DoAll(context.Background(), b.ops, results); err != nil {
		w.Fatalf("a batch of %d: %v", len(b.ops), err)
	}
	for i, r := range results {
		k := b.keys[i]
		want := k.model.do(w.now(), b.ops[i].Request)
		if want.Mark, want.Receipt = r.Mark, r.Receipt; r != want {
			w.Fatalf("op %d of %d, key %q: %s at %v: %s\n got %s\nwant %s", i, len(b.ops), k.op.Key,
				describeQuota(k.quota), w.now()-epoch, describeRequest(b.ops[i].Request), describeResult(r), describeResult(want))
		}
	}
}
