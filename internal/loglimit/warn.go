package loglimit

import (
	"log/slog"
	"time"
)

// Warn logs a warning about an event, unless there were too many recently. The attribute
// "unlogged" is the number of events since the last line that were not logged.
func (l *Limit) Warn(r Rate, log *slog.Logger, text string, args ...any) {
	unlogged, ok := l.Allow(r, time.Now())
	if !ok {
		return
	}
	if unlogged > 0 {
		args = append(args, "unlogged", unlogged)
	}
	log.Warn(text, args...)
}
