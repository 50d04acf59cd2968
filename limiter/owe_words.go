package limiter

import (
	"maps"
	"time"
)

// unknownWords are the words that the unknown keys of a reckoning begin with.
type unknownWords struct {
	all int64
	of  map[uint64]int64 // in place of all, by KeyID
}

// word returns the word that an unknown key begins with.
func (w *unknownWords) word(key []byte) int64 {
	if len(w.of) > 0 {
		if own, ok := w.of[KeyID(key)]; ok {
			return own
		}
	}
	return w.all
}

// each returns the words after f, without those that are no later than all others.
func (w *unknownWords) each(t int64, f func(id uint64, word int64) int64) (next unknownWords) {
	next.all = f(0, w.all)
	for id, word := range w.of {
		if word = f(id, word); word > max(t, next.all) {
			if next.of == nil {
				next.of = make(map[uint64]int64)
			}
			next.of[id] = word
		}
	}
	return next
}

// Owe implements [Keys]. It costs the same for any number of keys, and each key a lock the
// next time it is asked.
func (k *wordKeys) Owe(by Owing, now time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, t := k.at.Load(), instant(now)
	if r.states != nil {
		r.states.Owe(by, now)
		return
	}
	next := &reckoning{}
	next.adopt(&r.gcra)
	next.inherit(&r.gcra) // so that no word is taken for one of before a reset of the clock
	next.owing = &by
	unknown := unknownWords{r.unknown.all, maps.Clone(r.unknown.of)}
	for id := range by.Of {
		if _, ok := unknown.of[id]; !ok {
			if unknown.of == nil {
				unknown.of = make(map[uint64]int64)
			}
			unknown.of[id] = unknown.all
		}
	}
	next.unknown = unknown.each(t, func(id uint64, word int64) int64 {
		l := line{word: word}
		next.owe(&l, t, by.All+by.Of[id])
		return l.word
	})
	r.succeed(next, t)
	k.at.Store(next)
}

// begin returns the word of a key that is new at t. One that owes nothing begins as
// [gcra.first] says.
func (r *reckoning) begin(floor, t int64, key []byte) int64 {
	return r.first(max(floor, r.current(r.unknown.word(key), t)), t)
}

// opening returns what unknown keys owe, for those that have states from t on.
func (r *reckoning) opening(t int64) opening {
	o := opening{at: time.Duration(t)}
	whole := func(word int64) int64 { return (max(0, word-t) + r.interval - 1) / r.interval }
	o.all = whole(r.unknown.all)
	for id, word := range r.unknown.of {
		if o.of == nil {
			o.of = make(map[uint64]int64)
		}
		o.of[id] = whole(word)
	}
	return o
}

// Spent implements [Keys].
func (k *wordKeys) Spent(now time.Duration) (of map[uint64]float64, all bool) {
	k.mu.Lock() // no key is under a later quota
	defer k.mu.Unlock()
	r, t, spent := k.at.Load(), instant(now), make(map[uint64]float64)
	all = true
	if r.states != nil {
		spent, all = r.states.Spent(now)
		r = r.last
	}
	for id, word := range r.unknown.of {
		if word > t {
			spent[id] = float64(word-t) / float64(r.interval)
		}
	}
	k.table.each(func(n *node[keyedWord]) bool {
		if word := n.kept.word.Load(); word >= 0 {
			key := []byte(n.key())
			l := n.kept.line(word)
			n.kept.r.descend(r, &l, key)
			spent[KeyID(key)] = float64(max(0, l.word-t)) / float64(r.interval)
		}
		return true
	})
	return spent, all && k.table.indebted(t) == 0
}
