package redislimiter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
)

//go:embed lua/lease.lua
var leaseLua string

var leaseScript = newScript(timeLua, headLua, bucketLua, leaseLua)

var _ fleet.Lender = (*Store)(nil)

// Settle implements [fleet.Lender]. The buckets are those that Do takes from, so limits that ask
// for each request and limits whose instances hold permits may share a key. It is one round trip
// to each server, with one script for a single server and one for each key of a cluster.
func (s *Store) Settle(ctx context.Context, asks []fleet.Ask, answers []fleet.Answer) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	var groups []*leaseGroup
	byTag := make(map[string]*leaseGroup)
	_, single := s.client.(*redis.Client)
	for i := range asks {
		a := &asks[i]
		p, err := s.plan(&limiter.Op{Name: a.Name, Key: a.Key, Quota: a.Quota})
		if err == nil && p.script != bucketScript {
			err = fmt.Errorf("%q: %w: no bucket", a.Name, limiter.ErrUnsupported)
		}
		if err != nil {
			answers[i].Err = fmt.Errorf("redislimiter: %w", err)
			continue
		}
		base, tag := s.keyName(a.Name, a.Key)
		if single {
			tag = ""
		}
		g := byTag[tag]
		if g == nil {
			g = &leaseGroup{clock: s.clockOf(ctx, base)}
			g.call = call{script: leaseScript, args: []any{s.head(ctx, g.clock)}}
			byTag[tag] = g
			groups = append(groups, g)
		}
		key := base + ":" + string(p.letter)
		g.call.keys = append(g.call.keys, key[:len(base)], key, base+":leases")
		g.call.args = append(g.call.args, p.encodeLease(a))
		g.asks = append(g.asks, i)
	}
	calls := make([]*call, len(groups))
	for k, g := range groups {
		calls[k] = &g.call
	}
	sent := time.Now()
	_ = run(ctx, s.client, calls...) // each call has its own error
	for _, g := range groups {
		if err := s.readLeases(g, sent, answers); err != nil {
			for _, i := range g.asks {
				answers[i].Err = fmt.Errorf("redislimiter: %w", backendError(ctx, err))
			}
		}
	}
}

// Patience implements [fleet.Lender]. It is Config.Timeout, as for a request that asks Redis itself.
func (s *Store) Patience() time.Duration { return s.cfg.Timeout }

// leaseGroup is a run of the script, and the indices of its asks.
type leaseGroup struct {
	call  call
	asks  []int
	clock *clock
}

// encodeLease encodes an ask for lua/lease.lua.
func (p *plan) encodeLease(a *fleet.Ask) string {
	whole := func(n int64) float64 { return float64(min(max(n, -maxWhole), maxWhole)) }
	var room [256]byte
	b := append(room[:0], p.encodeAsk(new(limiter.Request), 0, false)...)
	b = appendNumbers(b, whole(a.Incarnation), whole(a.Number), whole(a.Spent), whole(max(a.Hold, 0)),
		a.Demand, whole(max(a.Want, 0)), whole(a.Period.Microseconds()), whole(a.Lasts.Microseconds()),
		whole(a.Silent.Microseconds()), flag(a.Owing), whole(a.Keep))
	return string(append(b, a.Holder...))
}

// perLease is the number of numbers in the answer to an ask.
const perLease = 8

// leaseStale is the outcome of an ask that came after a later one, as in lua/lease.lua.
const leaseStale = 2

// readLeases reads the answers of a script. An error concerns all asks of the script.
func (s *Store) readLeases(g *leaseGroup, sent time.Time, answers []fleet.Answer) error {
	if err := g.call.cmd.Err(); err != nil {
		return err
	}
	raw := s.parseReply(g.call.cmd.Val())
	text, _ := raw.packed.(string)
	r := reply(text)
	if len(r) != numberSize*(1+perLease*len(g.asks)) {
		if len(r) == numberSize {
			return errLate
		}
		return &limiter.OpError{Err: fmt.Errorf("unexpected answer %.200q to %d settlements", fmt.Sprint(raw.packed), len(g.asks))}
	}
	if now, ok := r.number(0); ok {
		g.clock.observe(sent, now)
	}
	for k, i := range g.asks {
		var n [perLease]int64
		for j := range n {
			var ok bool
			if n[j], ok = r.number(1 + perLease*k + j); !ok {
				answers[i].Err = &limiter.OpError{Err: errors.New("redislimiter: unexpected answer: no whole number")}
			}
		}
		switch {
		case answers[i].Err != nil:
		case n[0] == codeFailed:
			answers[i].Err = fmt.Errorf("redislimiter: %w", backendError(context.Background(), raw.failure()))
		default:
			answers[i] = fleet.Answer{
				Stale: n[0] == leaseStale, Granted: n[1], Valid: n[2] == 1, Wait: time.Duration(n[3]) * time.Microsecond,
				Incarnation: n[4], Free: n[5], Instances: int(n[6]), ResetAfter: time.Duration(n[7]) * time.Microsecond,
			}
		}
	}
	return nil
}
