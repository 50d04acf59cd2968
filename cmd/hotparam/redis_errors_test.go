package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/hotkeys"
)

// redisRefusal is an error reply of Redis.
type redisRefusal string

func (r redisRefusal) Error() string { return string(r) }
func (redisRefusal) RedisError()     {}

// An error of Redis states the remedy: the missing rights, or the address where Redis was
// expected.
func TestRedisErrorsSayWhatToDo(t *testing.T) {
	place := redisPlace{}
	place.redis.URL = "redis://ann:secret@10.0.0.5:6379/0"
	for _, c := range []struct {
		err  error
		user string
		want string
	}{
		{fmt.Errorf("block: %w", redisRefusal("NOPERM this user has no permissions")), operatorUser, "the rights of hotparam-operator"},
		{redisRefusal("NOPERM no"), readerUser, "the rights of hotparam-reader"},
		{hotkeys.ErrNoControl, operatorUser, "hotparam list --controls"},
		{hotkeys.ErrTooManyControls, operatorUser, "hotparam list --controls"},
		{errors.New("dial tcp: refused"), readerUser, "is Redis running at redis://…@10.0.0.5:6379/0?"},
	} {
		if got := place.explain(c.err, c.user); !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v: %v, want %q", c.err, got, c.want)
		}
	}
}
