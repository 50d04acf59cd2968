package httpserve

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// errorLog takes the lines of http.Server, which has one for each accept that fails,
// and passes on one in logEvery.
type errorLog struct {
	log *slog.Logger

	mu     sync.Mutex
	next   time.Time
	hidden int // lines since the last that was passed on
}

const logEvery = 10 * time.Second

// Write implements io.Writer.
func (l *errorLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.next) {
		l.hidden++
		return len(line), nil
	}
	l.log.Warn("HTTP server", "err", string(bytes.TrimSpace(line)), "more_before", l.hidden)
	l.next, l.hidden = now.Add(logEvery), 0
	return len(line), nil
}
