package chaos

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// flow is a key that is requested at a pace, at each instance or at one alone.
type flow struct {
	route, key string
	perSecond  int // requests per second at each instance
	instance   int // the only instance; -1 means each
}

// rollingKeys are the keys whose limits are changed by events.
var rollingKeys = []struct{ route, key string }{
	{"bucket", "a"}, {"bucket", "b"}, {"log", "a"}, {"local", "a"}, {"wait", "line"}, {"fleet", "a"},
}

// fleetRates are the requests per second at each instance for the key whose limit the instances
// share (scope: fleet).
var fleetRates = [instances]int{80, 60, 40}

// flows returns the steady load, about 350 requests a second. The items come in addition.
func flows() []flow {
	all := []flow{
		{"search", "steady", steadyRate, -1}, {"bucket", "a", 5, -1}, {"bucket", "b", 2, -1}, {"log", "a", 4, -1}, {"local", "a", 4, -1},
	}
	for i := range instances {
		all = append(all, flow{"solo", soloKey(i), soloRate * 8 / 5, i}, flow{"fleet", "a", fleetRates[i], i})
	}
	return all
}

// param returns the name of the parameter that makes the key of a route.
func param(route string) string {
	if route == "search" {
		return "q"
	}
	return "k"
}

// load sends the flows until it is stopped.
type load struct {
	f      *processFleet
	j      *judge
	client [instances]*http.Client
	work   sync.WaitGroup
}

func newLoad(f *processFleet, j *judge) *load {
	l := &load{f: f, j: j}
	for i := range l.client {
		l.client[i] = &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true, IdleConnTimeout: 3 * time.Second},
			Timeout:   requestTimeout,
		}
	}
	return l
}

func (l *load) start(ctx context.Context) {
	for _, fl := range flows() {
		for _, a := range l.f.apis {
			if fl.instance < 0 || fl.instance == a.index {
				l.work.Go(func() { l.keepSending(ctx, fl.perSecond, func() { l.sendAndJudge(a, fl.route, fl.key) }) })
			}
		}
	}
	for _, a := range l.f.apis {
		l.work.Go(func() { l.watchInstanceStalls(ctx, a) })
		l.work.Go(func() { l.keepSending(ctx, itemRequests, func() { l.requestItem(a, drawItem()) }) })
	}
	l.work.Go(func() { l.changeItems(ctx) })
	l.work.Go(func() { l.watchOwnStalls(ctx) })
	if l.f.redis.single != nil {
		l.work.Go(func() { l.watchRedisStalls(ctx) })
	}
}

// awaitAnswers waits until all requests have been answered, once the context has ended.
func (l *load) awaitAnswers() {
	l.work.Wait()
	for _, c := range l.client {
		c.CloseIdleConnections()
	}
}

// keepSending calls send at a pace until ctx ends, with few calls at a time.
func (l *load) keepSending(ctx context.Context, perSecond int, send func()) {
	var underWay atomic.Int64
	testenv.Every(ctx, time.Second/time.Duration(perSecond), func(int) {
		if underWay.Add(1) > 6 {
			underWay.Add(-1)
			return
		}
		l.work.Go(func() {
			defer underWay.Add(-1)
			send()
		})
	})
}

// sendAndJudge sends a request and passes the answer to the judge.
func (l *load) sendAndJudge(a *api, route, key string) {
	life, sent := a.lives.Load(), l.f.now()
	status, statesLimit, err := l.sendRequest(a, route, key)
	if a.lives.Load() != life {
		return // either life may have answered
	}
	l.j.recordAnswer(reply{api: a, life: life, route: route, key: key, sent: sent, status: status, statesLimit: statesLimit, err: err})
}

// sendRequest sends a request. statesLimit reports whether the answer states a limit, which has
// then decided on the request.
func (l *load) sendRequest(a *api, route, key string) (status int, statesLimit bool, err error) {
	res, _, err := fetch(context.Background(), l.client[a.index], http.MethodGet, "http://"+a.addr+"/"+route+"?"+param(route)+"="+key)
	if err != nil {
		return 0, false, err
	}
	return res.StatusCode, res.Header.Get("RateLimit") != "", nil
}

// watchInstanceStalls sends requests that bypass the guard. A slow answer is a stall of the
// machine, unless the instance was stopped on purpose.
func (l *load) watchInstanceStalls(ctx context.Context, a *api) {
	testenv.Every(ctx, 100*time.Millisecond, func(int) {
		sent := l.f.now()
		_, err := ask(ctx, l.client[a.index], http.MethodGet, "http://"+a.addr+"/chaos/control")
		isMeant := l.j.hasFault(func(e *effect) bool { return e.failsRequestsOf(a.index) })
		if now := l.f.now(); err == nil && now-sent > stallLeast && !isMeant {
			l.j.recordStall(oracle.Span{From: sent, To: now})
		}
	})
}

// watchRedisStalls pings Redis to measure stalls that delay Redis alone.
func (l *load) watchRedisStalls(ctx context.Context) {
	_ = testenv.WithRedis(l.f.redis.single.Addr(), nil, func(client *redis.Client) error {
		testenv.Every(ctx, 50*time.Millisecond, func(int) {
			sent := l.f.now()
			err := client.Ping(ctx).Err()
			isMeant := l.j.hasFault(func(e *effect) bool { return e.has(mayDecideLocally) })
			if now := l.f.now(); err == nil && now-sent > stallLeast && !isMeant {
				l.j.recordStall(oracle.Span{From: sent, To: now})
			}
		})
		return nil
	})
}

// stallLeast is the shortest delay that counts as a stall of the machine.
const stallLeast = 60 * time.Millisecond

// watchOwnStalls records when this process itself did not run.
func (l *load) watchOwnStalls(ctx context.Context) {
	const pace = 10 * time.Millisecond
	last := l.f.now()
	testenv.Every(ctx, pace, func(int) {
		now := l.f.now()
		if now-last > pace+stallLeast {
			l.j.recordStall(oracle.Span{From: last, To: now})
		}
		last = now
	})
}
