package webhook

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// Sender posts the events of a namespace. Each aggregator has one, and exactly one of them
// sends: among those that publish hot keys, the one that holds the right to send in Redis. So it
// does not matter whether there is one owner, with or without a standby, or one for each
// partition of Kafka. Tying the right to the holder of a certain partition was rejected: no one
// would send while that partition moves.
//
// The right expires on Redis's clock, and is stored with the position up to which events were
// sent. So the next sender continues where the last one stopped. Events posted at the moment
// when a sender dies may be posted again, with the same ID.
type Sender struct {
	cfg    Config
	client redis.UniversalClient
	http   *http.Client
	name   string // unique name of this sender
	key    string // the right to send in Redis

	redisOutage    loglimit.Outage
	receiverOutage loglimit.Outage
	dropLog        loglimit.Limit // limits the lines about dropped events
	count          counters
}

//go:embed lua/hold.lua
var holdLua string

var holdScript = redis.NewScript(holdLua)

// New returns a sender. It starts nothing and makes no call. The caller closes the client once
// Run has returned.
func New(client redis.UniversalClient, cfg Config) (*Sender, error) {
	if err := cfg.validate(client); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Sender{
		cfg: cfg, client: client, name: rand.Text(), key: published.NewLayout(cfg.Namespace).Webhook,
		http: &http.Client{
			Transport: cfg.transport,
			Timeout:   cfg.timeout,
			// An event and its signature are only for the configured URL.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Run sends until ctx ends, and returns nil. Failures are retried and counted, and logged once
// per outage.
func (s *Sender) Run(ctx context.Context) error {
	defer s.http.CloseIdleConnections()
	for ctx.Err() == nil {
		if s.cfg.Publishes() {
			position, err := s.acquireRight(ctx, "")
			s.logRedis(ctx, err)
			if err == nil && position != "" {
				s.send(ctx, position)
			}
		}
		_ = base.Sleep(ctx, s.cfg.lease/4)
	}
	return nil
}

// acquireRight acquires or extends the right to send. If position is not empty, it also raises the
// stored position to it. It returns the position in force, or "" if another sender holds the right.
func (s *Sender) acquireRight(ctx context.Context, position string) (string, error) {
	return s.runHold(ctx, position, "0")
}

// releaseRight raises the stored position, and releases the right if this sender holds it.
func (s *Sender) releaseRight(ctx context.Context, position string) error {
	_, err := s.runHold(ctx, position, "1")
	return err
}

func (s *Sender) runHold(ctx context.Context, position, done string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.lease/4)
	defer cancel()
	answer, err := holdScript.Run(ctx, s.client, []string{s.key}, s.name, strconv.FormatInt(s.cfg.lease.Milliseconds(), 10), position, done).StringSlice()
	switch {
	case err != nil:
		return "", fmt.Errorf("webhook: the right to send in Redis: %w", err)
	case len(answer) != 2 || answer[0] != "1":
		return "", nil
	}
	return answer[1], nil
}

// outageLines is the least time between log lines about outages of one kind.
const outageLines = 15 * time.Second

func (s *Sender) logRedis(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.redisOutage.Report(s.cfg.Logger, outageLines, time.Now(), err, loglimit.OutageText{
			Begun: "the webhook cannot send: trying again", Over: "the webhook can send again",
		})
	}
}
