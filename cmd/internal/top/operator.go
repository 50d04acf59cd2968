package top

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// operator sets and releases controls.
type operator struct {
	client             redis.UniversalClient
	namespace, claimed string
	explain            func(error) error // may be nil
	done               func()            // called after a change
}

// order is a person's order from the screen. An empty action is a release.
type order struct {
	key    rules.Key
	action published.ControlAction
	length time.Duration
	why    string
}

// orderDone is the result of an order.
type orderDone struct {
	answer string
	err    error
}

// orderTimeout bounds the exchange with Redis that carries out an order.
const orderTimeout = 5 * time.Second

// run carries out an order.
func (o operator) run(what order) orderDone {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	answer, err := o.carryOut(ctx, what)
	if err != nil {
		if o.explain != nil {
			err = o.explain(err)
		}
		return orderDone{err: err}
	}
	o.done()
	return orderDone{answer: answer}
}

// carryOut carries out an order and describes the result in words.
func (o operator) carryOut(ctx context.Context, what order) (string, error) {
	c, err := hotkeys.CarryOut(ctx, o.client, o.namespace, hotkeys.ControlOrder{Key: what.key, Action: what.action, For: what.length, Why: what.why, Claimed: o.claimed})
	switch {
	case err != nil:
		return "", err
	case what.action == "":
		return fmt.Sprintf("released %s in namespace %s: the %s has ended", what.key, o.namespace, c.Action), nil
	}
	return fmt.Sprintf("%s %s in namespace %s until %s", what.action, what.key, o.namespace, c.Until.Local().Format(time.TimeOnly)), nil
}
