package httpserve

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// errorLog receives the log lines of http.Server, which has one for each accept that fails, and
// passes them on at errorRate.
type errorLog struct {
	log   *slog.Logger
	lines loglimit.Limit
}

var errorRate = loglimit.Rate{Burst: 1, Every: 10 * time.Second}

// Write implements io.Writer.
func (l *errorLog) Write(line []byte) (int, error) {
	if unlogged, ok := l.lines.Allow(errorRate, time.Now()); ok {
		l.log.Warn("HTTP server", "err", string(bytes.TrimSpace(line)), "more_before", unlogged)
	}
	return len(line), nil
}
