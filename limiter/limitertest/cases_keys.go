package limitertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pgregory.net/rapid"

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
	{"G: a batch comes to what one ask after the other comes to", func(w *world) {
		if _, ok := w.backend.(limiter.Batcher); !ok {
			return
		}
		check(w.t, w.config, func(rt *rapid.T) {
			w := newWorldIn(w.t, rt, w.config)
			var keys []*modelKey
			for i := range rapid.IntRange(1, 4).Draw(rt, "keys") {
				q := drawAny(rt).WithDefaults()
				if !exact(&q, w.config.tick()) || len(w.config.kinds(&q)) <= int(limiter.Forget) {
					return
				}
				keys = append(keys, w.keyNamed("limit", fmt.Sprint(i), q))
			}
			held := map[*modelKey][]pairedResult{}
			for range rapid.IntRange(1, 6).Draw(rt, "batches") {
				var b askBatch
				for range rapid.IntRange(0, 8).Draw(rt, "ops") {
					k := rapid.SampledFrom(keys).Draw(rt, "key")
					s := newSchedule(rt, w.config, k.quota, w.config.kinds(k.quota))
					ask := s.drawAsk()
					if ask.Kind == limiter.Return {
						b.giveBack(k, held)
						continue
					}
					b.add(k, ask)
				}
				for i, a := range b.send(w) {
					if a.Taken > 0 {
						held[b.keys[i]] = append(held[b.keys[i]], a)
					}
				}
				w.sleep(newSchedule(rt, w.config, keys[0].quota, nil).pause())
			}
		})
	}},
}

// askBatch is a list of asks, each with the ask of the model.
type askBatch struct {
	keys   []*modelKey
	ops    []limiter.Op
	ideals []limiter.Request
}

func (b *askBatch) add(k *modelKey, ask limiter.Request) { b.addBoth(k, ask, ask) }

func (b *askBatch) addBoth(k *modelKey, ask, ideal limiter.Request) {
	op := k.op
	op.Request = ask
	b.keys, b.ops, b.ideals = append(b.keys, k), append(b.ops, op), append(b.ideals, ideal)
}

// giveBack adds the return of the latest take, if the model knows its result.
func (b *askBatch) giveBack(k *modelKey, held map[*modelKey][]pairedResult) {
	log, isLog := k.model.ideal.(*idealLog)
	list := held[k]
	if len(list) == 0 || isLog && (log.clipped || k.quota.CountDenied) || len(b.ops) > 0 {
		return // only as the first op: an earlier one may clip
	}
	a := list[len(list)-1]
	held[k] = list[:len(list)-1]
	b.addBoth(k, a.Return(), returnOf(a.Taken, a.ideal))
}

// send executes the batch and fails unless all results equal the model's.
func (b *askBatch) send(w *world) []pairedResult {
	w.Helper()
	batcher, ok := w.backend.(limiter.Batcher)
	if !ok {
		return nil
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
	answers := make([]pairedResult, len(b.ops))
	for i, r := range results {
		k := b.keys[i]
		answers[i] = pairedResult{Result: r, ideal: k.model.do(w.now(), b.ideals[i])}
		want := answers[i].ideal
		if want.Mark, want.Receipt = r.Mark, r.Receipt; r != want {
			w.Fatalf("op %d of %d, key %q: %s at %v: %s\n got %s\nwant %s", i, len(b.ops), k.op.Key,
				describeQuota(k.quota), w.now()-epoch, describeRequest(b.ops[i].Request), describeResult(r), describeResult(want))
		}
	}
	return answers
}
