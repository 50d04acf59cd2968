package loglimit

import (
	"log/slog"
	"time"
)

// Warn logs a warning about an event of now, unless there were too many of late. "unlogged"
// says how many since the last line were not logged.
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
