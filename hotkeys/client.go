package hotkeys

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout is how long a connection may take to come up.
const dialTimeout = 500 * time.Millisecond

// NewClient gives a client for redis://user:password@host:port/db,
// rediss://… (TLS) or unix:///path?db=0. It never retries by itself and keeps
// to the deadline of each call's context: the callers here have retries of
// their own, and a request must not wait. It connects on first use; the caller
// closes it.
func NewClient(rawURL string) (redis.UniversalClient, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		// url.Error holds the whole URL, password included: leave it out.
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("redis URL: %w; want redis://host:6379/0, rediss://user:password@host:6379/0 or unix:///path/to/redis.sock", err)
	}
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1
	if options.DialTimeout == 0 {
		options.DialTimeout = dialTimeout
	}
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(options), nil
}
