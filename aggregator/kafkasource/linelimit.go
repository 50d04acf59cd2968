package kafkasource

import (
	"sync"
	"time"
)

// lineLimit bounds how often lines of one kind are logged, of all partitions.
type lineLimit struct {
	mu   sync.Mutex
	from time.Time
	n    int
}

const (
	mostLines = 10
	linesSpan = 10 * time.Second
)

// allows reports whether one more line may be logged.
func (l *lineLimit) allows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.from) >= linesSpan {
		l.from, l.n = now, 0
	}
	l.n++
	return l.n <= mostLines
}
