package aggregator

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/window"
)

// watched is what is known of a key that is hot or suspect, besides its counts.
type watched struct {
	rule  *ruleWatch
	text  string
	hash  uint64
	tag   window.Tag // no window makes room for another key with it
	at    []int32    // its entry in each of the rule's views; -1: none
	marks []mark     // by threshold
	hots  int        // marks that are hot

	since  time.Time
	by     *threshold // the one that made the key hot, as long as it says so
	listed bool       // is published
	family            // whom it explains, and who explains it
	habit             // whether it is usual

	meter *meter // of a hot key

	suspect   *threshold // the one that the key may have passed; nil: none
	suspected time.Time
	exception *hotparam.Exception
	origins   *origins // instances
	routes    *origins
	callers   *origins
	top       *hotparam.Attribution // as it was told last
}

// mark is what one threshold says of a key.
type mark struct {
	hot   bool
	need  int64     // the count that made the key hot, as it was known last; 0: never
	over  time.Time // when the window is over that made the key hot
	hold  time.Time // it does not cool before
	below time.Time // end of the first window of those that were below the exit in a row
}

func (r *ruleWatch) newWatched(text []byte, hash uint64) *watched {
	w := &watched{rule: r, text: string(text), hash: hash, at: make([]int32, len(r.views)), marks: make([]mark, len(r.thresholds))}
	w.tag = window.Tag{Pinned: true, Owner: w}
	for i := range w.at {
		w.at[i] = -1
	}
	if len(r.rule.Except) > 0 {
		w.exception = r.rule.Exception(w.text)
	}
	return w
}

// pin ties a key to its entry in a view. It is false if the entry has no name.
func (r *ruleWatch) pin(v *view, i int32, w *watched) bool {
	if w.at[v.number] >= 0 {
		return true
	}
	if !v.Tie(i, &w.tag) {
		return false
	}
	w.at[v.number] = i
	v.pinned++
	r.keys[w.text] = w
	return true
}

// unpin lets go of a key's entry in a view.
func (r *ruleWatch) unpin(v *view, w *watched) {
	if i := w.at[v.number]; i >= 0 {
		v.Tie(i, nil)
		w.at[v.number] = -1
		v.pinned--
	}
}

// release forgets a key that is neither hot nor suspect.
func (r *ruleWatch) release(w *watched) {
	if w.hots > 0 || w.suspect != nil {
		return
	}
	for _, v := range r.views {
		r.unpin(v, w)
	}
	w.tag.Pinned = false
	delete(r.keys, w.text)
}

// watched returns the key that is tied to an entry; nil: none is.
func (v *view) watched(i int32) *watched {
	if t := v.Tag(i); t != nil {
		return t.Owner.(*watched)
	}
	return nil
}
