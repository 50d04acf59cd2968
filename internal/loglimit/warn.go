package loglimit

import (
	"context"
	"log/slog"
	"time"
)

// Warn logs a warning about an event, unless there were too many recently, and reports whether it
// did. The attribute "unlogged" is the number of events since the last line that were not logged.
func (l *Limit) Warn(r LineRate, log *slog.Logger, text string, args ...any) (logged bool) {
	return l.Log(r, log, slog.LevelWarn, text, args...)
}

// Log is [Limit.Warn] with another level.
func (l *Limit) Log(r LineRate, log *slog.Logger, level slog.Level, text string, args ...any) (logged bool) {
	unlogged, ok := l.Allow(r, time.Now())
	if !ok {
		return false
	}
	if unlogged > 0 {
		args = append(args, "unlogged", unlogged)
	}
	log.Log(context.Background(), level, text, args...)
	return true
}
