package hotkeys

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// poller decides when a state in Redis is read: at intervals, and soon after a push. Without absorb
// a push only makes it read, so no client that may publish can forge anything. A Redis user who may
// not subscribe still has the polls. Besides the subscription, its fields are used by one goroutine.
type poller struct {
	pollerConfig
	subscription *subscription
	kick         chan struct{} // a push without a payload of interest came, or a subscription began
	pushes       chan string   // payloads for absorb; if it is full, the next read recovers the change
	hints        loglimit.Limit
	outage       outage
	lines        loglimit.Limit
	denied       loglimit.Limit
	answered     atomic.Bool // the last read succeeded
}

type pollerConfig struct {
	client   redis.UniversalClient
	channel  string // on which pushes come
	poll     time.Duration
	timeout  time.Duration // bound of a call
	log      *slog.Logger
	lost     string // log line at the beginning of an outage
	again    string // log line at its end
	onFailed func() // reports a failed read, or a lost subscription
	// absorb applies the payload of a push, and reports whether a read must follow. If it is nil, a
	// read follows each push.
	absorb func(payload string) (look bool)
	// onDropped reports a push for which there was no room, and onUnread one that causes no read before
	// the next ones are allowed. They are used with absorb.
	onDropped, onUnread func()
}

// maxPushes is the number of pushes that can wait.
const maxPushes = 256

func newPoller(c pollerConfig) *poller {
	p := &poller{pollerConfig: c, kick: make(chan struct{}, 1), pushes: make(chan string, maxPushes)}
	p.subscription = &subscription{
		client: c.client, channel: c.channel, timeout: c.timeout, poll: c.poll, whenDenied: deniedEvery,
		deaf: make(chan struct{}, 1), kick: p.kick,
		onPush: p.queue, onFailed: c.onFailed,
	}
	return p
}

// queue queues a push for the polling goroutine.
func (p *poller) queue(payload string) {
	if p.absorb == nil {
		base.Notify(p.kick)
		return
	}
	if len(payload) > published.MaxPush { // no publisher sends that much
		payload = "" // which is as malformed
	}
	select {
	case p.pushes <- payload:
	default:
		p.onDropped()
	}
}

// wake is a reason to act.
type wake int

const (
	wakePoll  wake = iota // an interval has passed
	wakePush              // a push came
	wakeAlarm             // the caller's timer fired
)

// run calls act when it is time to read, and when alarm fires, until ctx ends. Alarm may be nil.
// A push that arrives when the bucket is empty wakes as soon as there is a token.
func (p *poller) run(ctx context.Context, alarm <-chan time.Time, act func(wake)) {
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { p.subscription.run(ctx) })
	ticker := time.NewTicker(p.poll)
	defer ticker.Stop()
	late := time.NewTimer(never)
	defer late.Stop()
	look := func() {
		if _, ok := p.hints.Allow(hintRate, time.Now()); ok {
			act(wakePush)
			return
		}
		late.Reset(hintRate.Every)
		if p.onUnread != nil {
			p.onUnread()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			act(wakePoll)
		case <-p.kick:
			look()
		case payload := <-p.pushes:
			if p.absorb(payload) {
				look()
			}
		case <-late.C:
			act(wakePush)
		case <-alarm:
			act(wakeAlarm)
		}
	}
}

// never is a wait that does not end.
const never = 24 * 365 * time.Hour

// callContext returns the context of a call.
func (p *poller) callContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.outage.timeout(p.timeout))
}

// record records the result of a read, unless ctx has ended it, and logs the beginning and the end of an
// outage.
func (p *poller) record(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.answered.Store(err == nil)
	if err == nil {
		if p.outage.succeeded() {
			p.log.Info(p.again)
		}
		return
	}
	p.onFailed()
	if _, begins := p.outage.recordFailure(err); begins {
		limit, rate := &p.lines, lineRate
		if IsDenied(err) {
			limit, rate = &p.denied, deniedRate
		}
		p.outage.warn(limit, rate, p.log, p.lost)
	}
}

// state returns the number of pushes, and whether there is a subscription and the last read
// succeeded. It may be called at any time.
func (p *poller) state() (pushes uint64, connected, answered bool) {
	heard := p.subscription.heard.Load()
	answered = p.answered.Load()
	return heard.pushes, heard.subscribed && answered, answered
}
