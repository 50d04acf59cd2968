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
	case n.told:
		return
	case !n.logged.IsZero() && now.Sub(n.logged) < quiet:
		if n.since.Equal(now) { // the outage has just begun
			n.untold++
		}
		return
	}
	args := append(n.args(), slog.Any("error", n.cause))
	if after := now.Sub(n.since); after > 0 {
		args = append(args, slog.Duration("since", after))
		n.untold-- // was counted at the beginning of the outage
	}
	if n.untold > 0 {
		args = append(args, slog.Uint64("outages_not_logged", n.untold))
	}
	n.logged, n.told, n.untold = now, true, 0
	s.Logger.Warn(s.Begun, args...)
}

// sayBack logs that a node is available again, if the outage itself was logged.
func (s *Set[T]) sayBack(n *nodeBreaker[T], now time.Time) {
	if n.told {
		n.told = false
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
