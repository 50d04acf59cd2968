package hotkeys

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// channel is a publisher, a watcher, and a stranger who publishes on their channel.
type channel struct {
	t *testing.T
	p *Publisher
	w *Watcher
	r *recorder
	// say publishes a payload that does not come from the publisher.
	say func(payload string)
	log *testenv.LogBuffer
}

func newChannel(t *testing.T) *channel {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	c := &channel{t: t, r: newRecorder(), log: new(testenv.LogBuffer)}
	c.p = testPublisher(t, testClient(t, server.URL()), nil)
	c.p.Publish(hots(hot("mine", 100, 50)))
	testenv.Running(t, c.p.Run)
	var err error
	c.w, err = NewWatcher(testClient(t, server.URL()), WatcherConfig{Namespace: testNamespace, Logger: loggerTo(c.log), Timeout: patience}, c.r)
	must(t, err)
	testenv.Running(t, c.w.Run)
	c.r.await(t, "the first key", has("mine"))
	c.say = func(payload string) { must(t, admin.Publish(t.Context(), testLayout.Changed, payload).Err()) }
	return c
}

// next returns a well-formed change that follows the published state.
func (c *channel) next(more uint64, hot []published.Hot, cool ...rules.Key) string {
	v, err := published.ParseVersion(c.p.Stats().Version)
	must(c.t, err)
	v.N += more
	change := published.Push{Version: v, At: time.Now(), Beat: time.Hour, Cool: cool}
	for _, h := range hot {
		h.Until = time.Now().Add(time.Hour)
		change.Hot = append(change.Hot, published.PushEntry{Hot: h, TTL: time.Hour})
	}
	return string(published.EncodePush(&change))
}

// However many messages are on the channel, Redis is read only a few times a second, and the
// publisher's changes are known by the next poll.
func TestFloodOfPushes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	c := newChannel(t)
	before, from := c.w.Stats(), time.Now()
	seed := testenv.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	said := 0
	for ; time.Since(from) < 3*time.Second; said++ {
		switch random.IntN(7) {
		case 0:
			c.say("garbage")
		case 1:
			c.say(`{"version":"foreign` + fmt.Sprint(said) + `:1"}`)
		case 2:
			c.say(c.next(1+uint64(random.IntN(1e9)), nil))
		case 3:
			c.say(fmt.Sprintf(`{"version":%q}`, strings.Replace(c.p.Stats().Version, ":", ":9", 1)))
		case 4:
			c.say(strings.Repeat("x", published.MaxPush+1))
		case 5:
			c.say(`{"version":"` + c.p.Stats().Version + `","fleet":{"instances":7,"was":"","suspects":"` + fmt.Sprint(said) + `","new":["r k"],"over":[]}}`)
		case 6:
			c.say(c.next(0, nil, hot("mine", 1, 1).Key))
		}
		if said == 500 {
			c.p.Publish(hots(hot("meanwhile", 100, 50)))
		}
	}
	c.r.await(t, "what became hot in the flood", has("mine", "meanwhile"))
	took := time.Since(from)
	s := c.w.Stats()
	reads := s.Resyncs - before.Resyncs + s.Gaps - before.Gaps
	polls := s.Polls - before.Polls
	t.Logf("%d pushes in %v: %d polls, %d reads of the set or the stream; %+v", said, took, polls, reads, s)
	if most := uint64(hintRate.Burst) + uint64(took/hintRate.Every+took/time.Second) + 2; polls > most || reads > most {
		t.Errorf("%d polls and %d reads in %v, want %d at most", polls, reads, took, most)
	}
	if said > 2000 && s.Unread+s.Dropped+s.Malformed == before.Unread+before.Dropped+before.Malformed {
		t.Error("nothing was counted")
	}
	if c.r.everCooled("mine") {
		t.Error("a key that is hot was let go of")
	}
	if n := len(c.log.Lines()); n > 2*lineRate.Burst+2 {
		t.Errorf("%d lines:\n%s", n, strings.Join(c.log.Lines(), "\n"))
	}
}

// A forged next change has an effect until the next poll, once.
func TestForgedChange(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	for _, name := range []string{"nothing follows", "the change it stands for follows"} {
		t.Run(name, func(t *testing.T) {
			c := newChannel(t)
			evil := hot("evil", 1e6, 1)
			forged := c.next(1, []published.Hot{evil}, hot("mine", 1, 1).Key)
			c.say(forged)
			c.r.until(t, "the forgery, or the end of it", func() bool { return c.r.cooled["mine"] })
			want := []string{"mine"}
			if name != "nothing follows" {
				c.p.Publish(hots(hot("another", 100, 50))) // the change that the forgery passed for
				want = append(want, "another")
			}
			from := time.Now()
			c.r.await(t, "what Redis has", has(want...))
			t.Logf("put right after %v", time.Since(from))
			if s := c.w.Stats(); s.Bogus != 1 {
				t.Errorf("%+v: want one forgery", s)
			}
			c.r.mu.Lock()
			clear(c.r.cooled)
			c.r.mu.Unlock()
			for range 200 { // the publisher continues
				c.say(c.next(1, []published.Hot{evil}, hot("mine", 1, 1).Key))
				time.Sleep(5 * time.Millisecond)
			}
			later := hot("later", 100, 50)
			c.p.Publish(hots(later))
			c.r.await(t, "what is hot later", has(append(want, "later")...))
			if c.r.everCooled("mine") || c.r.everCooled("evil") {
				t.Error("a forgery came through once more")
			}
		})
	}
}

// Forged suspects last until the next poll, even if they pretend to restore the former ones.
func TestForgedSuspects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	c := newChannel(t)
	c.p.Suspects(0, []published.Hot{hot("suspect", 10, 5)})
	c.p.Instances([]published.Instance{{Name: "api-1", Heard: time.Now().Add(time.Hour)}})
	c.r.awaitFleet(t, "the suspect", 1, "suspect")
	was := digest(slices.Values([]string{hot("suspect", 1, 1).Key.String()}))
	version := c.p.Stats().Version
	c.say(`{"version":"` + version + `","fleet":{"instances":1,"was":"` + was + `","suspects":"x","new":[],"over":["search-terms suspect"]}}`)
	c.say(`{"version":"` + version + `","fleet":{"instances":1,"was":"x","suspects":"` + was + `","new":["search-terms forged"],"over":[]}}`)
	c.r.awaitFleet(t, "the forgery", 1, "forged")
	c.r.awaitFleet(t, "the suspect again", 1, "suspect")
}
