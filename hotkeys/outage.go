package hotkeys

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// outage is a series of failures of one kind of work. It ends when work of that kind
// succeeds. It is not safe for concurrent use.
type outage struct {
	tries  int   // failed tries; 0 if there is no outage
	logged bool  // whether its beginning was logged
	err    error // error of the last try
}

// The wait after a failure doubles from minBackoff to maxBackoff.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

func (o *outage) isOn() bool { return o.tries > 0 }

// recordFailure records a failure. It returns how long to wait before the next try, and
// whether the outage begins with it.
func (o *outage) recordFailure(err error) (wait time.Duration, begins bool) {
	begins, o.err = !o.isOn(), err
	wait = base.Backoff(o.tries, minBackoff, maxBackoff)
	o.tries++
	return wait, begins
}

// warn logs the failure that an outage begins with.
func (o *outage) warn(lines *loglimit.Limit, rate loglimit.LineRate, log *slog.Logger, text string, args ...any) {
	o.logged = lines.Warn(rate, log, text, append(args, "err", o.err)...)
}

// timeout returns how long the next call may take. In an outage that is longer than usual, to
// allow for the round trips of a new connection: if Redis is slow, no connection would ever be
// made within the usual timeout.
func (o *outage) timeout(usual time.Duration) time.Duration {
	return usual * time.Duration(1+min(o.tries, maxPatience-1))
}

// maxPatience is the largest factor by which the timeout of a call grows in an outage.
const maxPatience = 3

// succeeded ends the outage, if there is one, and reports whether its end should be logged. It
// should if its beginning was.
func (o *outage) succeeded() (log bool) {
	log = o.logged
	*o = outage{}
	return log
}

// lineRate limits the lines of one kind that are logged.
var lineRate = loglimit.LineRate{Burst: 4, Every: 15 * time.Second}

// aboutCommand reports whether err concerns only the command, such as a missing
// permission, so that other commands may succeed. It is false if there was no answer, or
// the server that answered takes no writes at all.
func aboutCommand(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, word := range []string{"READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY ", "OOM ", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS"} {
		if strings.Contains(err.Error(), word) { // anywhere: a script's error has a prefix
			return false
		}
	}
	return true
}

// isWrongType reports whether err means that a key holds a value of another type.
func isWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }
