package limitertest

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

var wrapperCases = []wrapperCase{
	{"an error concerns its op alone", func(w *wrapper) {
		good, bad, other := wrapperOp("a good", 1, rules.Quota{}), wrapperOp("a bad", 1, rules.Quota{}), wrapperOp("a other", 1, rules.Quota{})
		w.nodes.setPoisoned("a bad", true)
		for range 5 {
			w.askAll([]limiter.Op{good, bad, other})
			w.askOne(bad)
			w.askOne(good)
			time.Sleep(time.Second)
		}
		w.settle()
		w.took(good, 10)
		w.took(other, 5)
		w.took(bad, 0)
		w.nodes.setPoisoned("a bad", false)
		w.askOne(bad)
		w.settle()
		w.took(bad, 1)
	}},
	{"a node that is lost takes no other's keys", func(w *wrapper) {
		var ops []limiter.Op
		for _, key := range []string{"a1", "b1", "c1", "b2", "a2"} {
			ops = append(ops, wrapperOp(key, 1, rules.Quota{}))
		}
		w.askAll(ops)
		w.settle()
		w.nodes.setLost("b", true)
		for range 5 {
			w.askAll(ops)
			for _, op := range ops {
				w.askOne(op)
			}
			time.Sleep(time.Second)
		}
		w.settle()
		for _, op := range ops {
			if op.Key[0] != 'b' {
				w.took(op, 11)
			}
		}
		w.nodes.setLost("b", false)
		w.settle()
		for _, op := range ops {
			before := w.nodes.takenPermits(op)
			w.askOne(op)
			w.settle()
			w.took(op, before+1)
		}
	}},
	{"what is given back comes back", func(w *wrapper) {
		for _, q := range wrapperQuotas {
			for _, after := range []time.Duration{0, 50 * ms, 150 * ms, 350 * ms} {
				op := wrapperOp("a "+string(q.Algorithm)+after.String(), 3, q)
				w.askOne(op)
				first, _ := w.askOne(op)
				time.Sleep(after)
				op.N = 5
				second, _ := w.askOne(op)
				time.Sleep(after)
				w.giveBack(op, second, 5)
				w.giveBack(op, first, 2)
				w.settle()
				w.took(op, 4)
			}
		}
	}},
	{"what another limit refuses costs nothing", func(w *wrapper) {
		for _, q := range wrapperQuotas {
			op := wrapperOp("a "+string(q.Algorithm), 1, q)
			w.askOne(op)
			for i := range 49 {
				r, _ := w.askOne(op)
				time.Sleep(time.Duration(i%7) * 5 * ms)
				w.giveBack(op, r, 1)
			}
			w.settle()
			w.took(op, 1)
		}
	}},
	{"who is refused by one limit takes nothing of another", func(w *wrapper) {
		for _, lost := range []bool{false, true} {
			for _, q := range wrapperQuotas {
				name := fmt.Sprint(q.Algorithm, lost)
				shared, user, other := wrapperOp("a shared "+name, 1, q), wrapperOp("a user "+name, 1, q), wrapperOp("b other "+name, 1, q)
				shared.Together, user.Together, other.Together = true, true, true
				exhaust := user
				exhaust.Request = limiter.Request{N: user.Quota.Burst - 3}
				w.askOne(exhaust)
				w.settle()
				if w.nodes.setLost("b", lost); lost && !w.config.Decides {
					continue
				}
				passed := int64(0)
				for i := range 40 {
					results := w.askAll([]limiter.Op{shared, other, user})
					switch denied := !results[0].Allowed || !results[1].Allowed || !results[2].Allowed; {
					case !denied:
						passed++
					case results[0].Taken > 0 && !lost:
						w.Fatalf("%s: %+v was taken though %+v, %+v", name, results[0], results[1], results[2])
					case lost: // it is not known which is asked first: the caller returns the permits
						for k, op := range []limiter.Op{shared, other, user} {
							if results[k].Taken > 0 {
								w.giveBack(op, results[k], results[k].Taken)
							}
						}
					}
					time.Sleep(time.Duration(i%7) * 5 * ms)
				}
				w.settle()
				w.nodes.setLost("b", false)
				w.settle()
				if passed < 1 {
					w.Fatalf("%s: none of three passed", name)
				}
				w.took(shared, passed)
			}
		}
	}},
	{"what was taken elsewhere is not given back to the backend", func(w *wrapper) {
		for _, q := range wrapperQuotas {
			// A backend that could not be reached may be charged with the take afterwards. A
			// backend that cannot decide on the key may not.
			for how, fail := range map[string]func(key string, on bool){
				"lost": func(_ string, on bool) { w.nodes.setLost("b", on) }, "poisoned": w.nodes.setPoisoned,
			} {
				op := wrapperOp("b "+string(q.Algorithm)+how, 10, q)
				w.askOne(op)
				w.settle()
				fail(op.Key, true)
				op.N = 5
				r, decided := w.askOne(op)
				if how == "poisoned" {
					w.settle()
				}
				fail(op.Key, false)
				w.settle()
				if decided && r.Taken > 0 {
					w.giveBack(op, r, 5)
				}
				w.settle()
				w.took(op, 10)
			}
		}
	}},
}

// took fails unless the inner backend lacks exactly that many permits of op's key.
func (w *wrapper) took(op limiter.Op, want int64) {
	w.Helper()
	if got := w.nodes.takenPermits(op); got != want {
		w.Fatalf("%s: %d are taken of the backend within, want %d", op.Key, got, want)
	}
}

// giveBack returns n of the permits that r took.
func (w *wrapper) giveBack(op limiter.Op, r limiter.Result, n int64) {
	w.Helper()
	op.Request = returnOf(n, r)
	w.askOne(op)
}
