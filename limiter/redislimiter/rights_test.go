package redislimiter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// documentedRights returns the rights that a doc comment names.
func documentedRights(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	words := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", " ")), " ")
	found := regexp.MustCompile(`needs the rights ([a-z, ]+), for the key`).FindStringSubmatch(words)
	if found == nil {
		t.Fatalf("%s names no rights", file)
	}
	return strings.Split(strings.ReplaceAll(found[1], " and ", ", "), ", ")
}

// Everything works with the documented rights, and none of them is superfluous.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	admin := clientAt(t, server.URL())
	password := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(password, []byte("PASSWORD"), 0o600))
	for _, test := range []struct {
		file, keys, channel string
		act                 func(t *testing.T, admin, client redis.UniversalClient) error
	}{
		{"members.go", "~hotparam:{%s}:members*", "", actMember},
		{"semaphore.go", "~hotparam:{%s/*", "&hotparam:{%s}:released", actSemaphore},
		{"permits.go", "~hotparam:{%s/*", "", actPermits},
	} {
		t.Run(test.file, func(t *testing.T) {
			words := []any{"ACL", "SETUSER", "limiter", "reset", "on", ">PASSWORD", "resetchannels", fmt.Sprintf(test.keys, namespaceOf(t))}
			if test.channel != "" {
				words = append(words, fmt.Sprintf(test.channel, namespaceOf(t)))
			}
			try := func(commands []string) error {
				all := slices.Clone(words)
				for _, c := range commands {
					all = append(all, "+"+c)
				}
				must(t, admin.Do(t.Context(), all...).Err())
				must(t, admin.FlushAll(t.Context()).Err())
				must(t, admin.ScriptFlush(t.Context()).Err())
				client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig{URL: server.URL(), Username: "limiter", PasswordFile: password})
				must(t, err)
				defer func() { must(t, client.Close()) }()
				return test.act(t, admin, client)
			}
			rights := documentedRights(t, test.file)
			if err := try(rights); err != nil {
				t.Fatalf("with all that is documented: %v", err)
			}
			for i, right := range rights {
				if try(slices.Delete(slices.Clone(rights), i, i+1)) == nil {
					t.Errorf("%s is documented, and nothing needs it", right)
				}
			}
		})
	}
}

func actMember(t *testing.T, admin, client redis.UniversalClient) error {
	left, taken := &heldShare{held: "10 of r"}, &heldShare{}
	m := membersOf(t, client, "api-1", func(c *MembersConfig) { c.Shares = left })
	for _, key := range m.keys() {
		must(t, admin.Set(t.Context(), key, "foreign", 0).Err())
	}
	m.beat(t.Context())
	if s := m.Stats(); s.Count != 1 {
		return fmt.Errorf("%+v", s)
	}
	m.leaveFleet(t.Context())
	if !errors.Is(admin.ZScore(t.Context(), m.key, m.member).Err(), redis.Nil) {
		return errors.New("did not leave")
	}
	must(t, admin.HSet(t.Context(), m.keys()[2], "old", "1 of long ago").Err())
	next := membersOf(t, client, "api-2", func(c *MembersConfig) { c.Shares = taken })
	next.beat(t.Context())
	if taken.held != "10 of r" {
		return fmt.Errorf("it has %q", taken.held)
	}
	return nil
}

func actSemaphore(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	s := semaphoreOf(t, client, nil)
	key := semaphoreKey(s.cfg.Namespace, "k")
	must(t, admin.Set(ctx, semaphoreKey(s.cfg.Namespace, "foreign"), "foreign", 0).Err())
	if _, _, err := s.Acquire(ctx, "foreign", semaphore.Request{Permits: 2}); err != nil {
		return err
	}
	must(t, admin.ZAdd(ctx, key, redis.Z{Score: 1000, Member: "crashed/1"}).Err())
	must(t, admin.ZAdd(ctx, key+waitingSuffix, redis.Z{Score: 1e18, Member: "other/1"}).Err())
	l, _, err := s.Acquire(ctx, "k", semaphore.Request{Permits: 2})
	if err != nil {
		return err
	}
	s.keeping.Store(true) // as while Run runs
	if _, err := s.askRedis(ctx, &waiter{key: key, keeps: true, wake: make(chan struct{}, 1)}, 2); err != nil {
		return err
	}
	s.renew(ctx)
	l.Release()
	if err := s.gate.probe(ctx, key); err != nil {
		return err
	}
	if got := s.Stats(); got.Failures+got.Lost > 0 {
		return fmt.Errorf("%+v", got)
	}
	sub := client.Subscribe(ctx, s.channel)
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(ctx, patience); err != nil {
		return err
	}
	must(t, sub.Ping(ctx))
	_, err = sub.ReceiveTimeout(ctx, patience)
	return err
}

func actPermits(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	p := permitsOf(t, client, nil)
	must(t, admin.MSet(ctx, p.keys[0], "foreign", p.keys[1], "foreign").Err())
	kept := permitRate(4, time.Hour)
	kept.KeepAlive = 2 * time.Hour
	_, err := p.TrySetRate(ctx, kept)
	all := []error{err}
	take := func(n int64) {
		_, err := p.TryAcquire(ctx, n)
		all = append(all, err)
	}
	take(1)
	if m := admin.ZRange(ctx, p.keys[1], -1, -1).Val(); len(m) > 0 {
		take(1)
		must(t, admin.ZAdd(ctx, p.keys[1], redis.Z{Member: m[0], Score: 1000}).Err()) // this one has ended, and the other has not
	}
	take(3)
	take(3)
	all = append(all, p.Release(ctx, 2))
	_, err = p.Expire(ctx, time.Hour)
	all = append(all, err)
	_, err = p.ClearExpire(ctx)
	all = append(all, err)
	all = append(all, p.gate.probe(ctx, p.keys[1]))
	_, err = p.Delete(ctx)
	return errors.Join(append(all, err)...)
}
