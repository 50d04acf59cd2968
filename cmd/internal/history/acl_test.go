package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The documented rights suffice, none is superfluous, and the users of instances and aggregators cannot
// read the history.
func TestRights(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	f := newTraffic(3)
	shop, err := NewStore(admin, "shop")
	must(t, err)
	f.run(t, testWriter(shop, nil), epoch0, 130)
	as := func(user string, words []any, commands []string) *Store {
		t.Helper()
		args := slices.Insert(slices.Clone(words), 3, any("reset"))
		for _, c := range commands {
			args = append(args, c)
		}
		must(t, admin.Do(t.Context(), args...).Err())
		t.Setenv("TEST_REDIS_PASSWORD", "PASSWORD")
		client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig{URL: testenv.Patient(t, server.URL()), Username: user, PasswordEnv: "TEST_REDIS_PASSWORD"})
		must(t, err)
		t.Cleanup(func() { client.Close() })
		s, err := NewStore(client, "shop")
		must(t, err)
		return s
	}
	acts := map[string]func(ctx context.Context, s *Store) error{
		"hotparam-history": func(ctx context.Context, s *Store) error {
			_, err := s.Read(ctx, Query{From: time.Unix(epoch0, 0), To: time.Unix(epoch0+130, 0)})
			return err
		},
		"hotparam-historian": func(ctx context.Context, s *Store) error {
			must(t, admin.Do(ctx, "SCRIPT", "FLUSH").Err())
			must(t, admin.FlushAll(ctx).Err())
			w := testWriter(s, nil)
			for i := range int64(200) {
				w.Add(f.second(epoch0 + i))
				if i%40 == 0 { // a successor finds panes, chunks and their sizes
					w.step(ctx)
					w.epoch, w.retry = 0, time.Time{}
				}
			}
			w.step(ctx)
			if s := w.Stats(); s.Failing != "" || s.Chunks == 0 {
				return errors.New("writing: " + s.Failing)
			}
			if _, err := s.Forget(ctx, "q=1", time.Hour); err != nil {
				return err
			}
			must(t, admin.HSet(ctx, s.panes("statsd"), epoch0+199, "x").Err())
			_, err := s.Forget(ctx, "q=2", time.Hour)
			return err
		},
	}
	for _, user := range []string{"hotparam-history", "hotparam-historian"} { // the second empties Redis
		act := acts[user]
		words, commands := testenv.DocumentedRights(t, user)
		if err := act(t.Context(), as(user, words, commands)); err != nil {
			t.Fatalf("%s with all that is documented: %v", user, err)
		}
		for i, command := range commands {
			if act(t.Context(), as(user, words, slices.Delete(slices.Clone(commands), i, i+1))) == nil {
				t.Errorf("%s: %s is documented, and nothing needs it", user, command)
			}
		}
	}
	for _, user := range []string{"hotparam-reader", "hotparam-writer", "hotparam-operator", "hotparam-limiter", "hotparam-invalidator"} {
		words, commands := testenv.DocumentedRights(t, user)
		s := as(user, words, append(commands, "+hgetall", "+hset", "+hmget", "+hkeys"))
		for _, err := range []error{s.client.HGetAll(t.Context(), s.owners).Err(), s.client.HKeys(t.Context(), s.panes("statsd")).Err(), s.client.HSet(t.Context(), s.owners, "a", "b").Err()} {
			if err == nil || errors.Is(err, redis.Nil) || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s: %v", user, err)
			}
		}
	}
	reader, commands := testenv.DocumentedRights(t, "hotparam-history")
	if err := as("hotparam-history", reader, append(commands, "+hset")).client.HSet(t.Context(), fmt.Sprintf("hotparam-history:{%s}:owners", "shop"), "a", "b").Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a reader writes: %v", err)
	}
}
