package redislimiter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// outages remembers which servers did not answer, so that not every call has to find
// that out by its deadline. A cluster's masters are told apart. After a while one call
// is let through, to see.
type outages struct {
	retry time.Duration
	some  atomic.Bool // any of them: else nobody has to look
	mu    sync.Mutex
	away  map[string]*outage // by the server's address; empty where there is but one
}

type outage struct {
	until time.Time
	key   string // one that the server has
}

// allow tells whether a call for the key may be made.
func (o *outages) allow(ctx context.Context, client redis.UniversalClient, key string, now time.Time) bool {
	if !o.some.Load() {
		return true
	}
	addr := server(ctx, client, key)
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.away[addr]
	if a == nil {
		return true
	}
	if now.Before(a.until) {
		return false
	}
	a.until = now.Add(o.retry) // for all but this one
	return true
}

// change is what a call told of the servers.
type change int

const (
	changeNone  change = iota
	changeBegun        // the first outage has begun
	changeOver         // the last one is over
)

// note notes what a call came to; hasty: the caller gave up too soon to tell anything.
func (o *outages) note(ctx context.Context, client redis.UniversalClient, key string, err error, hasty bool) change {
	switch {
	case err == nil || isAnswer(err):
		return o.answered(ctx, client, key)
	case hasty:
		return changeNone
	}
	return o.failed(ctx, client, key, time.Now())
}

func (o *outages) failed(ctx context.Context, client redis.UniversalClient, key string, now time.Time) change {
	addr := server(ctx, client, key)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away == nil {
		o.away = make(map[string]*outage)
	}
	for other, a := range o.away { // no longer a master, or asked for nothing
		if now.Sub(a.until) > time.Minute {
			delete(o.away, other)
		}
	}
	begun := len(o.away) == 0
	o.away[addr] = &outage{until: now.Add(o.retry), key: key}
	o.some.Store(true)
	if begun {
		return changeBegun
	}
	return changeNone
}

func (o *outages) answered(ctx context.Context, client redis.UniversalClient, key string) change {
	if !o.some.Load() {
		return changeNone
	}
	addr := server(ctx, client, key)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away[addr] == nil {
		return changeNone
	}
	delete(o.away, addr)
	return o.less()
}

// less notes that there is one outage less.
func (o *outages) less() change {
	o.some.Store(len(o.away) > 0)
	if len(o.away) > 0 {
		return changeNone
	}
	return changeOver
}

// over ends the outage that was found with the key: it is answered, by whatever server
// has it now.
func (o *outages) over(key string) change {
	o.mu.Lock()
	defer o.mu.Unlock()
	for addr, a := range o.away {
		if a.key == key {
			delete(o.away, addr)
			return o.less()
		}
	}
	return changeNone
}

// keys are one key of each server that is away.
func (o *outages) keys() []string {
	if !o.some.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := make([]string, 0, len(o.away))
	for _, a := range o.away {
		keys = append(keys, a.key)
	}
	return keys
}

// defaultRetry is how long a server that did not answer is left alone.
const defaultRetry = 250 * time.Millisecond
