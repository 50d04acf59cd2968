package redislimiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// CellConfig configures a [Cell].
type CellConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Timeout bounds a call whose context has no deadline. Default 50 ms.
	Timeout time.Duration
}

// Cell is a [limiter.Backend] on the redis-cell module (https://github.com/brandur/redis-cell),
// by its command CL.THROTTLE. It is for servers that already have the module loaded; [Store]
// needs no module. It is safe for concurrent use.
//
// It supports Take and Peek of token_bucket and gcra, and returns [limiter.ErrUnsupported] for
// everything else. Its times are whole seconds. RetryAfter is the module's value, at least 1 s:
// up to version 0.2.2 the module drops fractions of a second. ResetAfter is the module's value
// plus 1 s. The module drops a bucket's state up to a millisecond before the bucket is full.
type Cell struct {
	client redis.UniversalClient
	cfg    CellConfig
}

var _ limiter.Clustered = (*Cell)(nil)

// ErrNoCell is returned if the server has not loaded the redis-cell module.
var ErrNoCell = errors.New(`the server has not loaded the module redis-cell (loadmodule libredis_cell.so); Store needs no module`)

// NewCell returns a Cell. It connects on first use, so only a call can return [ErrNoCell]; the
// caller closes the client. NewCell fails for a client that ignores the deadlines of contexts.
func NewCell(client redis.UniversalClient, cfg CellConfig) (*Cell, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if err := (Config{Namespace: cfg.Namespace, Timeout: cfg.Timeout}).validate(); err != nil {
		return nil, fmt.Errorf("redislimiter: cell: %w", err)
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: cell: %w", err)
	}
	return &Cell{client, cfg}, nil
}

// Do executes a Take or a Peek in one round trip.
func (c *Cell) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	r, err := c.do(ctx, &op)
	if err != nil {
		return limiter.Result{}, fmt.Errorf("redislimiter: cell: %q: %w", op.Name, err)
	}
	return r, nil
}

func (c *Cell) do(ctx context.Context, op *limiter.Op) (limiter.Result, error) {
	q := op.Quota
	switch {
	case op.Name == "" || op.Key == "":
		return limiter.Result{}, limiter.ErrNoKey
	case q == nil:
		return limiter.Result{}, errNoQuota
	case op.Kind != limiter.Take && op.Kind != limiter.Peek, op.Kind == limiter.Take && op.Keep > 0:
		return limiter.Result{}, fmt.Errorf("CL.THROTTLE supports only Take and Peek, without Keep: %w", limiter.ErrUnsupported)
	}
	if err := cellKnows(q); err != nil {
		return limiter.Result{}, err
	}
	if q.Burst == rules.Unlimited {
		return unlimited(&op.Request), nil
	}
	quantity := op.N
	if op.Kind == limiter.Peek || op.N < 0 {
		quantity = 0
	}
	reply, err := c.throttle(ctx, op, min(quantity, q.Burst+1))
	if err != nil {
		return limiter.Result{}, err
	}
	return cellResult(op, reply), nil
}

// cellKnows returns an error if CL.THROTTLE cannot express q.
func cellKnows(q *rules.Quota) error {
	if err := q.Validate(); err != nil {
		return err
	}
	bucket := q.Algorithm == "" || q.Algorithm == rules.TokenBucket || q.Algorithm == rules.GCRA
	switch {
	case q.Burst == rules.Unlimited:
		return nil
	case !bucket || q.Missing != 0 || q.WarmUp != 0 || q.Penalty != 0:
		return fmt.Errorf("CL.THROTTLE supports only a token bucket that starts full: %w", limiter.ErrUnsupported)
	case q.Rate.Per%time.Second != 0:
		return fmt.Errorf("limit.rate %q: CL.THROTTLE supports only whole seconds: %w", q.Rate, limiter.ErrUnsupported)
	case int64(q.Rate.Per)/q.Rate.N < int64(time.Microsecond):
		return fmt.Errorf("limit.rate %q: CL.THROTTLE supports at most a million per second: %w", q.Rate, limiter.ErrUnsupported)
	}
	return nil
}

// throttle runs the command and returns the five numbers of its reply.
func (c *Cell) throttle(ctx context.Context, op *limiter.Op, quantity int64) ([5]int64, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	q := op.Quota
	value, err := c.run(ctx, c.key(op), q.Burst-1, q.Rate.N, int64(q.Rate.Per/time.Second), quantity)
	if err != nil {
		return [5]int64{}, err
	}
	n, err := readCell(value, q.Burst)
	if err != nil {
		return n, &limiter.OpError{Err: err}
	}
	return n, nil
}

// key returns the name of an op's key in Redis.
func (c *Cell) key(op *limiter.Op) string {
	return redisKey(c.cfg.Namespace, hashOf(op.Name, op.Key)) + ":cell"
}

// run runs the command on a key.
func (c *Cell) run(ctx context.Context, key string, numbers ...any) (any, error) {
	cmd := once{redis.NewCmd(ctx, append([]any{"CL.THROTTLE", key}, numbers...)...)}
	cmd.SetFirstKeyPos(1)
	_ = c.client.Process(ctx, cmd) // the command has the error
	err := cmd.Err()
	if redis.HasErrorPrefix(err, "unknown command") { // returned for every key
		return nil, fmt.Errorf("%w: %w", ErrNoCell, err)
	}
	return cmd.Val(), backendError(ctx, err)
}

// Node implements [limiter.Clustered].
func (c *Cell) Node(ctx context.Context, op limiter.Op) string {
	if _, ok := c.client.(*redis.ClusterClient); !ok {
		return ""
	}
	return server(ctx, c.client, c.key(&op))
}

// Probe implements [limiter.Clustered]. It takes one permit, at 1,000 a second, of its own key in
// the slot of op's key.
func (c *Cell) Probe(ctx context.Context, op limiter.Op) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	if _, err := c.run(ctx, c.key(&op)+probeSuffix, 999, 1000, 1, 1); err != nil {
		return fmt.Errorf("redislimiter: cell: probe: %w", err)
	}
	return nil
}

// readCell parses the reply of CL.THROTTLE: whether the request is limited, the limit, the
// remaining permits, the seconds until a retry, and the seconds until the bucket is full. The
// retry is -1 if the request is allowed or can never pass.
func readCell(reply any, limit int64) (n [5]int64, err error) {
	list, ok := reply.([]any)
	if !ok || len(list) != len(n) {
		return n, fmt.Errorf("unexpected answer %.200q", fmt.Sprint(reply))
	}
	for i, v := range list {
		if n[i], ok = v.(int64); !ok {
			return n, fmt.Errorf("unexpected answer: %.50q at %d", fmt.Sprint(v), i)
		}
	}
	const maxSeconds = int64(math.MaxInt64/time.Second) - 1
	if n[0] < 0 || n[0] > 1 || n[1] != limit || n[2] < 0 || n[3] < -1 || n[3] > maxSeconds || n[4] < -1 || n[4] > maxSeconds {
		return n, fmt.Errorf("unexpected answer %d for a limit of %d", n, limit)
	}
	n[2] = min(n[2], limit)
	return n, nil
}

func cellResult(op *limiter.Op, n [5]int64) limiter.Result {
	r := limiter.Result{Decision: rules.Decision{
		Reason: rules.ReasonLimited, Limit: n[1], Remaining: n[2], ResetAfter: time.Duration(n[4]+1) * time.Second,
	}}
	if n[2] == n[1] {
		r.ResetAfter = 0
	}
	keep := max(op.Keep, 0)
	switch {
	case op.N < 0:
	case op.N == 0:
		r.Allowed = true
	case op.Kind == limiter.Take:
		if r.Allowed = n[0] == 0; r.Allowed {
			r.Taken = op.N
		} else if n[3] >= 0 {
			r.RetryAfter = time.Duration(max(n[3], 1)) * time.Second
		}
	case keep <= n[2] && op.N <= n[2]-keep:
		r.Allowed = true
	case keep <= n[1] && op.N <= n[1]-keep: // retry once the missing permits are earned
		interval := (op.Quota.Rate.Per-1)/time.Duration(op.Quota.Rate.N) + 1
		r.RetryAfter = interval * time.Duration(op.N+keep-n[2])
	}
	if r.Allowed {
		r.Reason = rules.ReasonWithin
	}
	return r
}
