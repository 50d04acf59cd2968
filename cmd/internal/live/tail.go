package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// streamRead is the result of one read of the streams.
type streamRead struct {
	events []Event // events in order
	// missed is a lower bound of the number of changes that were removed before they could be
	// read.
	missed uint64
	// lost reports whether Redis lost its state, so that changes may be missing.
	lost bool
	now  time.Time // time of the read, on Redis's clock
}

const (
	// pageSize is the number of changes of hot keys that are read in one exchange. Most changes
	// have one or two keys; the largest have 1,000.
	pageSize = 100
	// maxBehind is how many changes a reader may be behind. It misses earlier ones.
	maxBehind = 2000
	// knownControls bounds the changes of controls that are read, and the controls that are
	// known.
	knownControls = 2 * published.MaxControls
)

// tail reads the additions to the two streams of a namespace. Its first commands are part of an
// exchange that its owner makes. It is not safe for concurrent use.
//
// It reads backwards, by XREVRANGE, since readers have a right to that command only.
type tail struct {
	namespace string
	layout    published.Layout
	backlog   int64 // number of past changes that a tail without a position reads

	after     position // events up to this one are dropped
	hot       position // last entry that was read of the stream of hot keys
	control   position // last entry that was read of the stream of controls
	begun     bool
	version   published.Version
	malformed uint64 // entries that could not be read

	known map[rules.Key]published.Control // controls in force, according to the stream
	heat  heatings

	answers struct {
		hot, control *redis.XMessageSliceCmd
		time         *redis.TimeCmd
		limit        int64 // number of changes that hot asked for
	}
}

// newTail returns a tail that begins after the event at after. If after is zero, the tail begins
// with the newest backlog changes.
func newTail(namespace string, after position, backlog int64) *tail {
	t := &tail{
		namespace: namespace, layout: published.NewLayout(namespace), backlog: backlog,
		after: after, known: make(map[rules.Key]published.Control), heat: newHeatings(),
	}
	if !after.isZero() { // read its change again, which may have more events
		t.hot = position{millis: after.millis}.previous()
	}
	return t
}

// queue adds the commands of one read to an exchange. newEvents reads their answers.
func (t *tail) queue(ctx context.Context, tx redis.Pipeliner) {
	a := &t.answers
	a.limit = pageSize
	if !t.begun && t.hot.isZero() {
		a.limit = max(1, t.backlog)
	}
	a.hot = tx.XRevRangeN(ctx, t.layout.Events, "+", t.hot.next().entryID(), a.limit)
	a.control = tx.XRevRangeN(ctx, t.layout.ControlEvents, "+", t.control.next().entryID(), knownControls)
	a.time = tx.Time(ctx)
}

// newEvents returns the new events. It makes further calls if more changes wait than queue asked for.
func (t *tail) newEvents(ctx context.Context, client redis.UniversalClient) (streamRead, error) {
	a := &t.answers
	b := streamRead{now: a.time.Val()}
	changes := a.hot.Val()
	follows := t.begun || !t.after.isZero() // older changes than the newest page are wanted too
	for page := changes; follows && int64(len(page)) == a.limit && len(changes) < maxBehind; a.limit = pageSize {
		oldest, err := parseEntryID(page[len(page)-1].ID)
		if err != nil || oldest.isZero() {
			break
		}
		page, err = client.XRevRangeN(ctx, t.layout.Events, oldest.previous().entryID(), t.hot.next().entryID(), pageSize).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return streamRead{}, fmt.Errorf("read older changes: %w", err)
		}
		changes = append(changes, page...)
	}
	t.takeChanges(changes, &b)
	t.takeControls(a.control.Val(), &b)
	for key, c := range t.known {
		if !c.Until.After(b.now) {
			b.events = append(b.events, t.expired(&c))
			delete(t.known, key)
		}
	}
	slices.SortFunc(b.events, func(x, y Event) int { return x.Compare(&y) })
	switch {
	case !t.after.isZero():
		b.events = slices.DeleteFunc(b.events, func(e Event) bool { return e.position.compare(t.after) <= 0 })
	case !t.begun && t.backlog == 0:
		b.events, b.missed, b.lost = nil, 0, false
	}
	t.begun = true
	return b, nil
}

// takeChanges adds the events of changes of hot keys, which are the newest first.
func (t *tail) takeChanges(changes []redis.XMessage, b *streamRead) {
	if t.hot.millis > uint64(b.now.Add(time.Hour).UnixMilli()) { // no publisher wrote an entry that far in the future
		t.hot = position{millis: uint64(b.now.UnixMilli())}.previous()
	}
	for i := range slices.Backward(changes) {
		m := &changes[i]
		entry, err := parseEntryID(m.ID)
		if err != nil || entry.compare(t.hot) <= 0 {
			continue
		}
		t.hot = entry
		change, events, err := changeEvents(t.namespace, entry, m)
		if err != nil {
			t.malformed++
			continue
		}
		switch was := t.version; {
		case was.IsZero():
		case was.Run != change.Version.Run:
			b.lost = true
			t.heat.startOver(change.At)
		case change.Version.N > was.N+1:
			b.missed += change.Version.N - was.N - 1
		}
		t.version = change.Version
		for i := range events {
			if t.heat.isNews(&events[i]) {
				b.events = append(b.events, events[i])
			}
		}
	}
	if !t.begun && (t.after.kind == hotKind || t.after.kind == coolKind) && !slices.ContainsFunc(changes, func(m redis.XMessage) bool { return m.ID == t.after.entryID() }) {
		b.lost = true // the stream no longer has the last change that was seen
	}
}

// next returns the position of the first possible entry after that of p. The zero position,
// which is before all entries, is returned unchanged.
func (p position) next() position {
	if p.isZero() {
		return p
	}
	if p.seq++; p.seq == 0 {
		p.millis++
	}
	return position{millis: p.millis, seq: p.seq}
}

// entryID returns the ID of the stream's entry.
func (p position) entryID() string {
	return strconv.FormatUint(p.millis, 10) + "-" + strconv.FormatUint(p.seq, 10)
}

// previous returns the position of the last possible entry before that of p.
func (p position) previous() position {
	if p.seq > 0 {
		return position{millis: p.millis, seq: p.seq - 1}
	}
	return position{millis: p.millis - 1, seq: 1<<64 - 1}
}
