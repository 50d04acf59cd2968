package live

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// fleet is a namespace on a real Redis, with a running publisher.
type fleet struct {
	client    redis.UniversalClient
	publisher *hotkeys.Publisher
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	client, err := hotkeys.NewClient(testenv.Patient(t, testenv.Redis(t).URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	p, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: "shop", Timeout: 20 * time.Second, BeatTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	run(t, func(ctx context.Context) { _ = p.Run(ctx) })
	return fleet{client, p}
}

// run runs f until the test ends.
func run(t *testing.T, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func hot(i int, rate float64) published.Hot {
	h := hotkeytest.Hot(hotkeytest.Text(i), rate, 50)
	h.Cause = published.Cause{Rate: rules.Rate{N: 100, Per: time.Second}}
	return h
}

// eventually waits until is returns true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Eventually(t, what, is)
}

var testConfig = Config{Namespace: "shop", Every: 50 * time.Millisecond, Timeout: 20 * time.Second}

// follow returns the events after the one with this ID.
func follow(t *testing.T, client redis.UniversalClient, after string) (events <-chan Event, ready <-chan struct{}) {
	t.Helper()
	f, err := NewFollower(client, testConfig, after)
	if err != nil {
		t.Fatal(err)
	}
	c, begun := make(chan Event, 1000), make(chan struct{})
	first := true
	run(t, func(ctx context.Context) {
		_ = f.Run(ctx, func(u Update) error {
			if first {
				close(begun)
				first = false
			}
			for _, e := range u.Events {
				c <- e
			}
			return nil
		})
	})
	return c, begun
}

func next(t *testing.T, events <-chan Event) Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event within 20 s")
		return Event{}
	}
}

// Each reader finds the same events with the same IDs, whenever it begins, and a cool event
// describes the hot key.
func TestEventsAreTheSameForEachReader(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	events, ready := follow(t, f.client, "")
	<-ready
	other := hot(2, 300)
	other.Outcomes = &published.FleetOutcomes{Outcomes: published.Outcomes{Passed: 13_800, Refused: 61_200}}
	f.publisher.Publish(hotkeytest.Hots(hot(1, 212), other))
	first, second := next(t, events), next(t, events)
	again := hot(1, 250)
	again.Limit, again.Burst = rules.Rate{N: 20, Per: time.Second}, 40
	f.publisher.Publish(hotkeytest.Hots(again))
	f.publisher.Publish(hotkeytest.Cools(hot(2, 3)))
	cool := next(t, events)

	if first.Type != Hot || first.Limit != "50/s" || first.By != "statsd" || !strings.Contains(first.Why, "in 1s, hot at 100/s") {
		t.Errorf("a hot event is %+v", first)
	}
	if cool.Type != Cool || cool.Key != hotkeytest.Text(2) || cool.Limit != "50/s" || cool.Counts == nil || cool.Counts.Threshold != "100/s" || cool.Counts.Rate != 300 {
		t.Errorf("a cool event does not say what the key was: %+v, %+v", cool, cool.Counts)
	}
	if cool.Outcomes == nil || cool.Outcomes.Refused != 61_200 || !strings.Contains(cool.Why, " at 100/s, 61,200 of 75,000 refused, at last ") || first.Outcomes != nil {
		t.Errorf("a cool event does not say what was refused: %q, %+v", cool.Why, cool.Outcomes)
	}
	// One reader resumes after the first event, and one only reads the last.
	late, _ := follow(t, f.client, first.ID)
	for _, want := range []Event{second, cool} {
		if e := next(t, late); e.ID != want.ID || e.Why != want.Why || e.Type != want.Type {
			t.Errorf("a reader that comes back finds %+v, want %+v", e, want)
		}
	}
	view := viewOf(t, f.client)
	eventually(t, "a view knows the events of the past", func() bool { return len(view.Recent(10)) == 3 })
	if got := view.Recent(1)[0]; got.ID != cool.ID {
		t.Errorf("the view's last event is %s, want %s", got.ID, cool.ID)
	}
}

func viewOf(t *testing.T, client redis.UniversalClient) *View {
	t.Helper()
	v, err := NewView(client, testConfig)
	if err != nil {
		t.Fatal(err)
	}
	run(t, func(ctx context.Context) { _ = v.Run(ctx) })
	return v
}

// The events of a key that is hot by its cost say how it is held, and why.
func TestEventsOfHeldKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	events, ready := follow(t, f.client, "")
	<-ready
	h := hot(1, 930)
	h.Cause = published.Cause{Kind: rules.Cost, Rate: rules.CostRate, Unit: rules.Millis}
	h.Hold = &published.Hold{Pool: "db", Stage: published.HoldTrial, Share: 0.9, Each: time.Second}
	f.publisher.Publish(hotkeytest.Hots(h))
	begun := next(t, events)
	f.publisher.Publish(hotkeytest.Cools(h))
	ended := next(t, events)
	const words = "on trial: 0 at a time · 90% of db's time · 1000 ms a request"
	if begun.Why != words || begun.Counts == nil || begun.Counts.Threshold != "cost" {
		t.Errorf("hot: %q, %+v", begun.Why, begun.Counts)
	}
	if !strings.HasPrefix(ended.Why, "hot for ") || !strings.HasSuffix(ended.Why, " by its cost, at last "+words) {
		t.Errorf("cool: %q", ended.Why)
	}
}

// The JSON form has each field of the schema, null where it does not apply.
func TestEventJSON(t *testing.T) {
	t.Parallel()
	fields := []string{"id", "at", "type", "namespace", "rule", "key", "rate", "low", "high", "threshold", "window", "unit", "why", "limit", "until", "by", "outcomes"}
	h := hot(1, 212)
	h.High = published.Unknown
	for name, e := range map[string]Event{
		"hot":   {ID: "5-0.h0", Type: Hot, Counts: counts(&h), Limit: "50/s"},
		"block": {ID: "5-0.c0", Type: Block, Until: time.UnixMilli(1732172445123)},
	} {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for _, field := range fields {
			if _, ok := got[field]; !ok {
				t.Errorf("%s has no %s: %s", name, field, text)
			}
		}
		if len(got) != len(fields) {
			t.Errorf("%s has %d fields, want %d: %s", name, len(got), len(fields), text)
		}
		if name == "hot" && (got["high"] != nil || got["window"] != "1s" || got["unit"] != "requests" || got["until"] != nil) {
			t.Errorf("hot is %s", text)
		}
		if name == "block" && (got["low"] != nil || got["until"] != "2024-11-21T07:00:45.123Z") {
			t.Errorf("block is %s", text)
		}
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"1732172445123-0.h7", "1732172445123-12.k0", "0-1.x0", "5-0.c0"} {
		p, err := parsePosition(id)
		if err != nil || p.String() != id || !ValidID(id) {
			t.Errorf("%s is read as %v, %v", id, p, err)
		}
	}
	for _, id := range []string{"", "5", "5-0", "5-0.z1", "5-0.h", "5-0.h-1", "x-0.h1", "5-x.h1", "5-0.h1.h1", strings.Repeat("1", 90) + "-0.h1"} {
		if ValidID(id) {
			t.Errorf("%q passes as an ID", id)
		}
	}
}

// The view shows the hot keys, each with one more point a second, the suspects and the instances.
func TestViewShowsTheState(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	view := viewOf(t, f.client)
	f.publisher.Publish(hotkeytest.Hots(hot(1, 212), hot(2, 300)))
	f.publisher.Suspects(0, []published.Hot{hot(3, 90)})
	f.publisher.Instances([]published.Instance{{Name: "api-1", Heard: time.Now()}})
	eventually(t, "all is seen", func() bool {
		s := view.Snapshot()
		return len(s.Hot) == 2 && len(s.Suspects) == 1 && len(s.Instances) == 1 && s.Published && s.Hot[0].History.Len() >= 2
	})
	s := view.Snapshot()
	if s.Hot[0].Text != hotkeytest.Text(2) || s.Hot[0].Rate != 300 || s.Hot[0].Limit.N != 50 {
		t.Errorf("the first is %+v", s.Hot[0].Hot)
	}
	if p := s.Hot[0].History.At(1); p.Rate != 300 || p.Low != 300 || p.High != 310 || p.At.Sub(s.Hot[0].History.At(0).At) < time.Second {
		t.Errorf("its points are %+v", s.Hot[0].History.Points())
	}
	if s.ControlsErr != nil || s.MembersErr != nil || s.Err != nil {
		t.Error(s.ControlsErr, s.MembersErr, s.Err)
	}
	f.publisher.Publish(hotkeytest.Cools(hot(2, 3)))
	eventually(t, "a key cools", func() bool { return len(view.Snapshot().Hot) == 1 })
	if len(s.Hot) != 2 {
		t.Error("a snapshot has changed")
	}
}

// A reader gets each event once, from any place on. One that is too slow gets the number of events
// that it has lost.
func TestReadersOfAViewsEvents(t *testing.T) {
	t.Parallel()
	v := &View{}
	var events []Event
	for i := range 50 {
		p := position{millis: 1000, kind: hotKind, index: i}
		events = append(events, Event{ID: p.String(), position: p})
	}
	expect := func(seen uint64, first int, want, lost uint64) uint64 {
		t.Helper()
		got, found, without := v.EventsAfter(seen)
		if uint64(len(got)) != want || without != lost || want > 0 && got[0].ID != events[first].ID {
			t.Errorf("after %d events: %d, and %d are lost; want %d from event %d on, and %d lost", seen, len(got), without, want, first, lost)
		}
		return found
	}
	now, _ := v.Seek("")
	v.addEvents(events[:40], false)
	seen := expect(now, 0, 40, 0)
	v.addEvents(events[40:], false)
	expect(expect(seen, 40, 10, 0), 0, 0, 0)
	if seen, complete := v.Seek(events[30].ID); expect(seen, 31, 19, 0) != 50 || !complete {
		t.Errorf("after event 30: complete: %v", complete)
	}
	if seen, complete := v.Seek("5-0.h0"); expect(seen, 0, 50, 0) != 50 || complete {
		t.Errorf("after an unknown event: complete: %v", complete)
	}
	v.addEvents(events[:1], true) // events before it are missing
	expect(50, 0, 1, 0)
	expect(49, 0, 1, 1)
	if _, complete := v.Seek(events[49].ID); complete {
		t.Error("after a gap all events are kept")
	}
}

// The backlog and the points are bounded, and old points go first.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	v := &View{}
	for i := range 3 * Backlog {
		v.addEvents([]Event{{position: position{millis: uint64(i)}}}, false)
	}
	if n := len(v.Recent(1e6)); n != Backlog {
		t.Errorf("the backlog has %d events, want %d", n, Backlog)
	}
	var h, early History
	for i := range 1000 {
		h = h.add(newPoint(time.Unix(int64(i), 0), &published.Hot{Low: int64(i), High: published.Unknown, Rate: 1}))
		h = h.add(newPoint(time.Unix(int64(i), 0), &published.Hot{Low: 7e6})) // in the same second
		if i == 350 {
			early = h
		}
		if cap(h.points) > MaxPoints+slack {
			t.Fatalf("after %d points there is room for %d", i, cap(h.points))
		}
	}
	if p := h.At(0); h.Len() != MaxPoints || p.Low != 700 || p.High != published.Unknown || h.At(299).Low != 999 {
		t.Errorf("%d points from %+v", h.Len(), p)
	}
	if p := early.At(0); early.Len() != MaxPoints || p.Low != 51 || early.At(299).Low != 350 {
		t.Errorf("an earlier history has changed: %d points from %+v", early.Len(), p)
	}
}

// While Redis is unavailable the last state stays, with the error. Then the view continues.
func TestViewOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dead := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer dead.Close()
	v, err := NewView(f.client, testConfig)
	if err != nil {
		t.Fatal(err)
	}
	f.publisher.Publish(hotkeytest.Hots(hot(1, 212)))
	eventually(t, "the key is seen", func() bool { v.refresh(t.Context()); return len(v.Snapshot().Hot) == 1 })
	v.client, v.redisReader.client = dead, dead
	v.refresh(t.Context())
	if s := v.Snapshot(); s.Err == nil || len(s.Hot) != 1 || s.Read.IsZero() {
		t.Errorf("while Redis is away: %+v", s)
	}
	v.client, v.redisReader.client = f.client, f.client
	v.refresh(t.Context())
	if s := v.Snapshot(); s.Err != nil || len(s.Hot) != 1 {
		t.Errorf("afterwards: %+v", s)
	}
}

// The end of a control is an event that is the same for each reader.
func TestControlEvents(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	key := rules.Key{Rule: "search-terms", Text: hotkeytest.Text(1)}
	events, ready := follow(t, f.client, "")
	<-ready
	if _, err := hotkeys.CarryOut(t.Context(), f.client, "shop", hotkeys.ControlOrder{Key: key, Action: published.ControlBlock, For: time.Second, Why: "scraper", Claimed: "ann@laptop"}); err != nil {
		t.Fatal(err)
	}
	block, expired := next(t, events), next(t, events)
	if block.Type != Block || block.Why != "scraper" || !strings.Contains(block.By, "claims to be ann@laptop") || block.Until.IsZero() {
		t.Errorf("the block is %+v", block)
	}
	if expired.Type != Expired || expired.Key != key.Text || !expired.At.Equal(block.Until) {
		t.Errorf("its end is %+v", expired)
	}
	late, _ := follow(t, f.client, block.ID)
	if e := next(t, late); e.ID != expired.ID {
		t.Errorf("a later reader finds %s, want %s", e.ID, expired.ID)
	}
	if !slices.ContainsFunc([]Event{block, expired}, func(e Event) bool { return e.Namespace == "shop" }) {
		t.Error("no namespace")
	}
}
