package semaphore

import (
	"container/list"

	"github.com/hotparam/hotparam/rules"
)

// queue holds the waiters of one key of a [Memory]. It has a list for each class, so that
// finding a place does not walk past the waiters of other classes. The lock of the key's stripe
// guards it.
type queue struct {
	classes [rules.MaxClasses]list.List // of *waiter, in order of arrival
	len     int
	newest  bool // whether the newest of a class comes first, not the oldest
}

// waiter is a place in a queue. The caller that removes it to serve or deny it fills in the
// outcome and closes ready. The waiter may also remove itself, after which no other caller uses
// it.
type waiter struct {
	key   *keyState // set while it is queued
	class int
	place *list.Element // nil unless it is queued

	ready    chan struct{}
	lease    *slot // nil if denied
	decision rules.Decision
}

func (q *queue) push(w *waiter) {
	w.place = q.classes[w.class].PushBack(w)
	q.len++
}

func (q *queue) remove(w *waiter) {
	q.classes[w.class].Remove(w.place)
	w.place = nil
	q.len--
}

// head returns the waiter to serve next, or nil.
func (q *queue) head() *waiter {
	for i := range q.classes {
		e := q.classes[i].Front()
		if q.newest {
			e = q.classes[i].Back()
		}
		if e != nil {
			return e.Value.(*waiter)
		}
	}
	return nil
}

// ahead returns how many waiters are served before a newcomer of the class.
func (q *queue) ahead(class int) (n int) {
	for i := range class {
		n += q.classes[i].Len()
	}
	if q.newest {
		return n
	}
	return n + q.classes[class].Len()
}
