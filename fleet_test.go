package hotparam

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// sharers are instances that share two limits of 80 an hour: one for all requests to /products,
// and one for each q of /search.
type sharers struct {
	t    *testing.T
	text string
	all  []*sharer
}

// sharer is an instance with its own client, so that it can crash.
type sharer struct {
	*fixture
	crash func()
}

func newSharers(t *testing.T, redis, top, terms string) *sharers {
	t.Helper()
	return &sharers{t: t, text: top + "\n" + shop(redis, nowhere(t),
		fmt.Sprintf(`{id: all, match: {route: "GET /products"}, limit: {%s}}`, terms),
		fmt.Sprintf(`{id: each, match: {route: "GET /search"}, by: [q], limit: {%s}}`, terms))}
}

const shared80 = "rate: 80/1h, burst: 80, scope: share"

// start starts another instance.
func (s *sharers) start() *sharer {
	s.t.Helper()
	url, _, _ := strings.Cut(s.text[strings.Index(s.text, "redis://"):], `"`)
	client, err := hotkeys.NewClient(url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	one := &sharer{fixture: open(s.t, s.text, WithRedis(client), WithName(fmt.Sprint("api-", len(s.all))))}
	one.crash = func() {
		client.Close() // so it neither leaves nor hands over
		_ = one.Close(s.t.Context())
	}
	s.all = append(s.all, one)
	return one
}

func (s *sharers) startAll(n int) {
	s.t.Helper()
	for range n {
		s.start()
	}
	s.settled()
}

// leave closes an instance.
func (s *sharers) leave(one *sharer) {
	s.t.Helper()
	if err := one.Close(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.forget(one)
}

func (s *sharers) forget(one *sharer) {
	for i, other := range s.all {
		if other == one {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return
		}
	}
}

// settled waits until each instance knows the others and its own initial share.
func (s *sharers) settled() {
	s.t.Helper()
	for _, one := range s.all {
		one.await(fmt.Sprint("a fleet of ", len(s.all)), func() bool {
			stats := one.Stats().Members
			return stats.Settled && stats.Count == len(s.all)
		})
	}
}

// passes returns how many of many requests to each instance pass.
func (s *sharers) passes(url string) (sum int) {
	for _, one := range s.all {
		sum += one.passes(90, url)
	}
	return sum
}

// sharedURLs are requests to a limit without a key, and to one key of another limit.
var sharedURLs = []string{"/products", "/search?q=a"}

// check uses up each limit and compares the number of passed requests with the allowed range.
func (s *sharers) check(what string, least, most int) {
	s.t.Helper()
	for _, url := range sharedURLs {
		if n := s.passes(url); n < least || n > most {
			s.t.Errorf("%s: %d requests of %s passed, want %d to %d", what, n, url, least, most)
		}
	}
}

// Instances that start together have the burst together, and a replacement for an instance that
// has used its share gets nothing.
func TestFleetStartsTogether(t *testing.T) {
	t.Parallel()
	s := newSharers(t, testenv.Redis(t).URL(), "", shared80)
	s.startAll(8)
	s.check("8 that start together", 72, 80)
	for _, one := range s.all[:4] {
		s.leave(one)
		s.start()
	}
	for _, one := range s.all[:2] {
		one.crash()
		s.forget(one)
		s.start()
	}
	s.settled()
	s.check("6 are replaced", 0, 1) // it takes 45 s to earn one
}

// A fleet that was idle and was replaced has its burst, in whatever order.
func TestIdleFleetIsRolled(t *testing.T) {
	for name, before := range map[string]bool{"the new one comes before": true, "the old one leaves before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharers(t, testenv.Redis(t).URL(), "", shared80)
			s.startAll(8)
			if n := s.passes("/search?q=spent"); n < 72 || n > 80 {
				t.Fatalf("%d passed", n)
			}
			for _, old := range s.all[:8] {
				if before {
					s.start()
					s.settled()
				}
				s.leave(old)
				if !before {
					s.start()
				}
				s.settled()
			}
			for _, one := range s.all {
				one.await("what another one left", func() bool { return one.Stats().Members.Inherited == 1 })
			}
			s.check("a fleet that was replaced", 72, 80)
			if n := s.passes("/search?q=spent"); n > 1 {
				t.Errorf("%d passed of a key whose burst was spent", n)
			}
		})
	}
}

// A crashed instance hands nothing over, so its share is earned again.
func TestCrashesAddNoBurst(t *testing.T) {
	t.Parallel()
	s := newSharers(t, testenv.Redis(t).URL(), "", shared80)
	s.startAll(4)
	for _, one := range s.all[:2] {
		one.crash()
		s.forget(one)
		s.start()
	}
	s.settled()
	// The crashed instances may still be counted. Then the two have two of six parts.
	s.check("2 of 4 have crashed", 26, 41)
}

// Without Redis, instances have shares of the number in the file.
func TestFleetStartsWithoutRedis(t *testing.T) {
	for name, terms := range map[string]string{"share": "rate: 40/1h, burst: 40, scope: share", "exact": "rate: 40/1h, burst: 40, scope: exact, when_redis_is_away: local"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
			server.Kill()
			s := newSharers(t, server.URL(), "instances: 4", terms)
			for range 4 {
				s.start()
			}
			early := map[string]int{} // mostly none, since the number of instances is unknown
			for _, url := range sharedURLs {
				early[url] = s.passes(url)
			}
			for _, one := range s.all {
				one.await("an assumption", func() bool { return one.Stats().Members.Assumed == 4 })
			}
			for _, url := range sharedURLs {
				if n := early[url] + s.passes(url); n < 36 || n > 41 {
					t.Errorf("4 of 4: %d requests of %s passed, want 36 to 41", n, url)
				}
			}
			s.check("again", 0, 1)
			if n := s.all[0].logged("their number is not known"); n != 1 {
				t.Errorf("it was logged %d times", n)
			}
			server.Restart()
			s.settled()
			s.all[0].awaitLog("answers again")
			if name == "share" {
				s.check("Redis is there", 0, 1)
			}
			if assumed := s.all[0].Stats().Members.Assumed; assumed != 0 {
				t.Errorf("%d are assumed", assumed)
			}
		})
	}
}

// A running process that gets its first shared limit has no share before it has received the other
// members.
func TestFirstShareIsNotTheWhole(t *testing.T) {
	t.Parallel()
	s := newSharers(t, testenv.Redis(t).URL(), "", shared80)
	s.startAll(2)
	s.check("2 that start", 76, 80)
	late := open(t, strings.ReplaceAll(s.text, "scope: share", "scope: instance"))
	late.write(s.text)
	late.await("a fleet of 3", func() bool { return late.Stats().Members.Count == 3 })
	if n := late.passes(90, "/products"); n > 1 {
		t.Errorf("%d passed", n)
	}
}
