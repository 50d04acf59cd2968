package hotkeys

import (
	"errors"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/backoff"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/redis/go-redis/v9"
)

// outage is one kind of work that fails. It lasts from a failure until work of that
// kind succeeds, whatever else does meanwhile. Of one goroutine.
type outage struct {
	backoff time.Duration // before the next try; 0: there is no outage
	tries   int           // that failed
	logged  bool          // that it began
	err     error         // the last
}

// After a failure the next try is minBackoff away, then twice as long, and so on;
// half of it is random, as a whole fleet fails at once.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

func (o *outage) isOn() bool { return o.backoff > 0 }

// failed records a failure. It returns how long to wait before the next try, and
// whether the outage begins.
func (o *outage) failed(err error) (wait time.Duration, begins bool) {
	begins, o.err = !o.isOn(), err
	o.tries++
	o.backoff = min(max(minBackoff, 2*o.backoff), maxBackoff)
	return backoff.Jitter(o.backoff), begins
}

// timeout returns how long the next call may take. In an outage it is longer than
// usual: new connections have to be made, each with an exchange or more of its own, and
// who gives these up never has one where Redis is slow.
func (o *outage) timeout(usual time.Duration) time.Duration {
	return usual * time.Duration(1+min(o.tries, maxPatience-1))
}

// maxPatience is how many times as long a call may take in an outage.
const maxPatience = 3

// succeeded records a success. It reports whether the beginning of the outage that
// is over was logged: then its end is, too.
func (o *outage) succeeded() (log bool) {
	log = o.logged
	*o = outage{}
	return log
}

// lineRate is how many lines of one kind are logged.
var lineRate = loglimit.Rate{Burst: 4, Every: 15 * time.Second}

// aboutCommand reports whether err is what Redis answered to the command alone, as a
// right that is missing: other commands may do. Otherwise nobody answered, or whoever
// did can take no writes at all.
func aboutCommand(err error) bool {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return false
	}
	for _, word := range []string{"READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY ", "OOM ", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS"} {
		if strings.Contains(err.Error(), word) { // in a script's error it stands anywhere
			return false
		}
	}
	return true
}

// isWrongType reports whether err is that a key holds a value of another type.
func isWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }
