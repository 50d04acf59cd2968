// Package loglimit bounds the log lines of an event, however often it happens.
//
//	limit.go   lines of one kind of event
//	warn.go    the warning of such an event
//	outage.go  the two lines of an outage, for its beginning and its end
package loglimit

import (
	"sync"
	"time"
)

// LineRate bounds the log lines of one kind: Burst at once, and then one each Every.
type LineRate struct {
	Burst int // at least 1
	Every time.Duration
}

// Limit bounds the lines of one kind of event. The zero value is ready to use. A Limit is safe
// for concurrent use, and must not be copied after its first use.
type Limit struct {
	mu       sync.Mutex
	debt     time.Duration // cost of the recent lines, Every each
	updated  time.Time     // time of debt
	unlogged int           // events since the last line
}

// Allow reports whether an event that happens at now may be logged, and how many events since
// the last line were not.
func (l *Limit) Allow(r LineRate, now time.Time) (unlogged int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.debt, l.updated = max(0, l.debt-now.Sub(l.updated)), now
	if l.debt > time.Duration(r.Burst-1)*r.Every {
		l.unlogged++
		return 0, false
	}
	l.debt += r.Every
	unlogged, l.unlogged = l.unlogged, 0
	return unlogged, true
}
