package semaphore

import "github.com/hotparam/hotparam/rules"

// queue holds the waiters of one key of a [Memory]. It has a list for each class, so that
// finding a place does not walk past the waiters of other classes. The lock of the key's stripe
// guards it.
type queue struct {
	classes [rules.MaxClasses]queueClass
	len     int
	newest  bool // whether the newest of a class comes first, not the oldest
}

type queueClass struct {
	first, last *waiter // waiters in order of arrival
	len         int
}

// waiter is a place in a queue. The caller that removes it to serve or deny it fills in the
// outcome and closes ready. The waiter may also remove itself, after which no other caller uses
// it.
type waiter struct {
	key        *keyState // set while it is queued
	n          int64
	class      int
	queued     bool
	prev, next *waiter

	ready    chan struct{}
	lease    *slot // nil if denied
	decision rules.Decision
}

func (q *queue) push(w *waiter) {
	c := &q.classes[w.class]
	w.prev, w.queued = c.last, true
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
	c.len++
	q.len++
}

func (q *queue) remove(w *waiter) {
	c := &q.classes[w.class]
	if w.prev == nil {
		c.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	c.len--
	q.len--
}

// head returns the waiter to serve next, or nil.
func (q *queue) head() *waiter {
	for i := range q.classes {
		c := &q.classes[i]
		if c.len == 0 {
			continue
		}
		if q.newest {
			return c.last
		}
		return c.first
	}
	return nil
}

// ahead returns how many waiters are served before a newcomer of the class.
func (q *queue) ahead(class int) (n int) {
	for i := range class {
		n += q.classes[i].len
	}
	if q.newest {
		return n
	}
	return n + q.classes[class].len
}

// each calls f for each waiter; f may remove it.
func (q *queue) each(f func(*waiter)) {
	for i := range q.classes {
		for w := q.classes[i].first; w != nil; {
			next := w.next
			f(w)
			w = next
		}
	}
}
