package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Hours are read as they were written and expire. They are for the writer alone: an instance with
// the rights of docs/REDIS.md cannot read them.
func TestBaselinesInRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	ctx := t.Context()
	admin := clientAs(t, server.URL(), "")
	for _, user := range []string{"hotparam-writer", "hotparam-reader"} {
		rule, commands := testenv.DocumentedRights(t, user)
		for _, word := range commands {
			rule = append(rule, word)
		}
		if err := admin.Do(ctx, rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b, err := newBaselineStore(clientAs(t, server.URL(), "hotparam-writer"), "shop")
	if err != nil {
		t.Fatal(err)
	}
	value := []byte{0, 1, '\r', '\n', 0xff}
	for _, part := range []string{"statsd/0-2", "statsd/1-2"} {
		if err := b.Write(ctx, 1000, part, []byte("before")); err != nil {
			t.Fatal(err)
		}
		if err := b.Write(ctx, 1000, part, value); err != nil {
			t.Fatal(err)
		}
	}
	read, err := b.Read(ctx, []int64{999, 1000})
	if err != nil || len(read[999]) != 0 || fmt.Sprint(read[1000]) != fmt.Sprint(map[string][]byte{"statsd/0-2": value, "statsd/1-2": value}) {
		t.Fatalf("%v, %v", read, err)
	}
	if ttl := admin.PTTL(ctx, b.key(1000)).Val(); ttl <= 8*24*time.Hour || ttl > baselineLife {
		t.Errorf("it ends in %v", ttl)
	}
	asReader, _ := newBaselineStore(clientAs(t, server.URL(), "hotparam-reader"), "shop")
	if read, err := asReader.Read(ctx, []int64{1000}); err == nil {
		t.Errorf("an instance reads %v", read)
	}
	if err := admin.Set(ctx, b.key(5), "foreign", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(ctx, []int64{5}); err == nil {
		t.Error("a foreign value was read")
	}
	_ = admin.Close()
	if err := testAway(b); err == nil {
		t.Error("read without Redis")
	}
}

// testAway reads with a client whose server is unavailable.
func testAway(b *baselineStore) error {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer func() { _ = client.Close() }()
	away := &baselineStore{client, b.prefix}
	_, err := away.Read(context.Background(), []int64{1000})
	return errors.Join(err, away.Write(context.Background(), 1, "x", nil))
}

func clientAs(t *testing.T, url, user string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		options.Username, options.Password = user, "PASSWORD"
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
