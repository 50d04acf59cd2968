package redislimiter

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
)

// asksForAll does everything that a store does, and returns what failed.
func asksForAll(t *testing.T, admin *redis.Client, s *Store) error {
	must(t, admin.FlushAll(context.Background()).Err())
	must(t, admin.ScriptFlush(context.Background()).Err())
	var failed []error
	for range 2 { // with unknown scripts first, then with known ones
		for _, every := range append(everyQuota[:len(everyQuota):len(everyQuota)], everyLocking) {
			for kind := limiter.Take; kind <= limiter.Forget; kind++ {
				_, err := s.Do(context.Background(), limiter.Op{Quota: every.quota, Name: every.name, Key: "key", Request: limiter.Request{Kind: kind, N: 1}})
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// Everything works with the documented rights, and none of them is superfluous.
func TestStoreLeastRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	must(t, err)
	line := regexp.MustCompile(`(?m)ACL SETUSER hotparam-limiter .*$`).FindString(string(text))
	var words, commands []any
	for word := range strings.FieldsSeq(strings.Replace(line, " on ", " reset on ", 1)) {
		if strings.HasPrefix(word, "+") {
			commands = append(commands, word)
		} else {
			words = append(words, word)
		}
	}
	server := testenv.Redis(t)
	admin := storeClient(t, server.Addr(), nil)
	s := storeOf(t, storeClient(t, server.Addr(), func(o *redis.Options) { o.Username, o.Password = "hotparam-limiter", "PASSWORD" }), nil)
	try := func(commands []any) error {
		must(t, admin.Do(context.Background(), slices.Concat(words, commands)...).Err())
		return asksForAll(t, admin, s)
	}
	if err := try(commands); err != nil || len(commands) == 0 {
		t.Fatalf("with all that is documented, %q: %v", commands, err)
	}
	for i, command := range commands {
		if try(slices.Delete(slices.Clone(commands), i, i+1)) == nil {
			t.Errorf("%s is documented, and nothing needs it", command)
		}
	}
	if err := try(commands); err != nil {
		t.Fatal(err)
	}
	other := storeOf(t, s.client, func(c *Config) { c.Namespace = "shopping" })
	if err := asksForAll(t, admin, other); err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "permission") {
		t.Errorf("another namespace: %v", err)
	}
}
