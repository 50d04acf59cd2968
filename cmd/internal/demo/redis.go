package demo

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
)

// embeddedRedis is the embedded Redis-compatible server, with its clients.
type embeddedRedis struct {
	*miniredis.Miniredis
	clients []redis.UniversalClient
}

func startRedis() (*embeddedRedis, error) {
	r := &embeddedRedis{Miniredis: miniredis.NewMiniRedis()}
	r.ClockTTL(true) // otherwise keys expire only in calls of FastForward
	if err := r.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	return r, nil
}

// redisTimeout bounds calls. It is long because only a very busy machine keeps this server from
// answering, which is no reason to report an outage.
const redisTimeout = 2 * time.Second

// client returns a client that is closed with the server.
func (r *embeddedRedis) client() (redis.UniversalClient, error) {
	c, err := hotkeys.NewClient("redis://" + r.Addr() + "/0")
	if err == nil {
		r.clients = append(r.clients, c)
	}
	return c, err
}

func (r *embeddedRedis) close() {
	for _, c := range r.clients {
		_ = c.Close() // all data has been sent
	}
	r.Close()
}
