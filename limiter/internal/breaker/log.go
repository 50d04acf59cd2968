package breaker

import (
	"log/slog"
	"time"
)

// quiet is how long after a log line about an outage of a node no other outage of it is
// logged. A node that flaps costs two lines in this time, and the next line has the number of
// outages. An outage that lasts longer is logged when the time is over.
const quiet = time.Minute

// sayAway logs that a node is away, once for an outage.
func (s *Set[T]) sayAway(n *node[T], now time.Time) {
	switch {
	case n.told:
		return
	case !n.logged.IsZero() && now.Sub(n.logged) < quiet:
		if n.since.Equal(now) { // it has just begun
			n.untold++
		}
		return
	}
	args := append(n.args(), slog.Any("error", n.cause))
	if after := now.Sub(n.since); after > 0 {
		args = append(args, slog.Duration("since", after))
		n.untold-- // counted when it began
	}
	if n.untold > 0 {
		args = append(args, slog.Uint64("outages_not_logged", n.untold))
	}
	n.logged, n.told, n.untold = now, true, 0
	s.Logger.Warn(s.Begun, args...)
}

// sayBack logs that a node is back, if it was logged that it went away.
func (s *Set[T]) sayBack(n *node[T], now time.Time) {
	if n.told {
		n.told = false
		s.Logger.Info(s.Over, append(n.args(), slog.Duration("after", now.Sub(n.since)))...)
	}
}

// args begin a line about a node.
func (n *node[T]) args() []any {
	if n.name == "" {
		return nil
	}
	return []any{slog.String("node", n.name)}
}
