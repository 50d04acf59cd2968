package breaker

import (
	"log/slog"
	"time"
)

// quiet is the time after a log line about an outage of a node in which no other outage of that
// node is logged. A flapping node costs two lines in this time, and the next line has the
// number of outages. An outage that lasts beyond the quiet time is logged then.
const quiet = time.Minute

// sayAway logs once per outage that a node is unavailable.
func (s *Set[T]) sayAway(n *nodeBreaker[T], now time.Time) {
	switch {
	case n.isLogged:
		return
	case !n.logged.IsZero() && now.Sub(n.logged) < quiet:
		if n.since.Equal(now) { // the outage has just begun
			n.unlogged++
		}
		return
	}
	args := append(n.args(), slog.Any("error", n.cause))
	if after := now.Sub(n.since); after > 0 {
		args = append(args, slog.Duration("since", after))
		n.unlogged-- // was counted at the beginning of the outage
	}
	if n.unlogged > 0 {
		args = append(args, slog.Uint64("outages_not_logged", n.unlogged))
	}
	n.logged, n.isLogged, n.unlogged = now, true, 0
	s.Logger.Warn(s.Begun, args...)
}

// sayBack logs that a node is available again, if the outage itself was logged.
func (s *Set[T]) sayBack(n *nodeBreaker[T], now time.Time) {
	if n.isLogged {
		n.isLogged = false
		s.Logger.Info(s.Over, append(n.args(), slog.Duration("after", now.Sub(n.since)))...)
	}
}

// args returns the first attributes of a log line about n: its name, if it has one.
func (n *nodeBreaker[T]) args() []any {
	if n.name == "" {
		return nil
	}
	return []any{slog.String("node", n.name)}
}
