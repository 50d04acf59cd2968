package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// restartSeen holds the observations of one namespace's hot set.
type restartSeen struct {
	name   string
	layout published.Layout
	lives  []restartLife

	entries []lossEntry
	reads   []lossEntry // of unexpired entries, each time; written is when
	stays   []*restartStay
	open    map[int]*restartStay
	known   map[int]string // texts of entries
}

func newSeen(namespace string) *restartSeen {
	return &restartSeen{name: namespace, layout: published.NewLayout(namespace), open: make(map[int]*restartStay), known: make(map[int]string)}
}

// restartLife is the time in which one aggregator publishes, until the next one of the namespace
// does.
type restartLife struct {
	down  int64 // end of the one before it, or 0 if there was none
	up    int64 // it published, at the latest
	heard int64 // it listens since then, at the latest
}

// restartStay is a time in which a key was hot without a break.
type restartStay struct {
	key        int
	from, left int64 // reads: the first, and the first without it; left 0: there was none
	last       published.Hot
	claims     map[string]int64 // the last read in which a threshold held the key
	holders    []string         // holders in the last read
}

// endWithin returns the end of the stay, or of the run.
func (s *restartStay) endWithin(run int64) int64 {
	if s.left == 0 {
		return run
	}
	return s.left
}

// overlaps reports whether the key was hot in both stays at once.
func (s *restartStay) overlaps(other *restartStay) bool {
	return s.key == other.key && (s.left == 0 || other.from < s.left) && (other.left == 0 || s.from < other.left)
}

// lossTTL is the lifetime of an entry when it is written.
const lossTTL = 15 * time.Second

// restartPace is the time between two reads of the published sets.
const restartPace = int64(50e6)

// watchRestarts reads the published sets of all namespaces until stop is called, which returns
// the times of the reads.
func watchRestarts(t *testing.T, client redis.UniversalClient, plan *lossPlan, all []*restartSeen) (stop func() (reads []int64)) {
	t.Helper()
	numbers := plan.numbers()
	var reads []int64
	look := func(ctx context.Context) {
		infos := make([]*redis.MapStringStringCmd, len(all))
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, x := range all {
				infos[i] = p.HGetAll(ctx, x.layout.Info)
			}
			return nil
		}); err != nil {
			return // the test has ended, or it is looked again
		}
		now := time.Now()
		reads = append(reads, now.UnixNano())
		for i, x := range all {
			x.recordRead(t, numbers, infos[i].Val(), now)
		}
	}
	end := beside(t, func(ctx context.Context) { testenv.Every(ctx, time.Duration(restartPace), func(int) { look(ctx) }) })
	return func() []int64 {
		end()
		return reads
	}
}

// recordRead records a read of all entries.
func (x *restartSeen) recordRead(t *testing.T, numbers map[string]int, entries map[string]string, now time.Time) {
	at, hot := now.UnixNano(), make(map[int]bool)
	for member, text := range entries {
		key, ok := numbers[member]
		if !ok {
			t.Errorf("%s: published: %q: %.100s", x.name, member, text)
			continue
		}
		s := x.open[key]
		if s == nil {
			s = &restartStay{key: key, from: at, claims: make(map[string]int64)}
		}
		if x.known[key] != text {
			h, err := published.ParseInfo([]byte(text))
			if err != nil {
				t.Errorf("%s: published: %q: %.100s: %v", x.name, member, text, err)
				continue
			}
			x.known[key], s.last = text, h
			s.holders = append(strings.Split(h.Also, ","), h.Cause.Kind.String()+"/"+h.Cause.Rate.Per.String())
			x.entries = append(x.entries, lossEntry{key, h, h.Until.Add(-lossTTL).UnixNano()})
		}
		if !s.last.Until.After(now) {
			continue // it has expired
		}
		hot[key] = true
		x.reads = append(x.reads, lossEntry{key, s.last, at})
		for _, name := range s.holders {
			s.claims[name] = at
		}
		if x.open[key] == nil {
			x.open[key], x.stays = s, append(x.stays, s)
		}
	}
	for key, s := range x.open {
		if !hot[key] {
			s.left = at
			delete(x.open, key)
			delete(x.known, key)
		}
	}
}

// lifeAt returns the newest life that had begun at an instant.
func (x *restartSeen) lifeAt(at int64) restartLife {
	life := x.lives[0]
	for _, l := range x.lives {
		if l.up <= at {
			life = l
		}
	}
	return life
}

// isDown reports whether no aggregator published at an instant, and returns when one did again.
func (x *restartSeen) isDown(at int64) (up int64, down bool) {
	for _, l := range x.lives {
		if l.down <= at && at < l.up {
			return l.up, true
		}
	}
	return at, false
}
