package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// writers follows the stream of changes that docs/design/redis.md describes. Once an owner's
// successor has written, no process may write under an earlier epoch.
type writers struct {
	last   string           // id of the last change read
	epochs map[string]int64 // epoch of each owner
}

// followStream reads the stream until the context ends. It forgets the epochs while Redis may lose its
// state, since they restart then.
func (w *writers) followStream(ctx context.Context, r *run) {
	w.last, w.epochs = "-", make(map[string]int64)
	testenv.Every(ctx, time.Second, func(int) {
		if r.judge.epochsMayRestart() {
			w.epochs = make(map[string]int64)
			w.last = "(" + strconv.FormatInt(time.Now().UnixMilli(), 10) + "-0" // older changes belong to the lost state
			return
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = testenv.WithRedis(r.redis.single.Addr(), nil, func(c *redis.Client) error { // read again a second later
			changes, err := c.XRange(ctx, redisName("events"), w.last, "+").Result()
			for _, change := range changes {
				w.checkChange(r, change)
			}
			return err
		})
	})
}

func (w *writers) checkChange(r *run, change redis.XMessage) {
	w.last = "(" + change.ID
	owner := fmt.Sprint(change.Values["owner"])
	epoch, err := strconv.ParseInt(fmt.Sprint(change.Values["epoch"]), 10, 64)
	if before := w.epochs[owner]; err == nil && epoch < before {
		r.recordViolation(oracle.Violation{At: r.now(), Invariant: oracle.I3, Subject: "owner " + owner, Text: fmt.Sprintf(
			"change %s was written under epoch %d after one under epoch %d: two publish at a time", change.ID, epoch, before)})
		return
	}
	w.epochs[owner] = epoch
}
