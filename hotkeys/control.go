package hotkeys

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

// ListControls returns the controls of a namespace that are in force, by key. Their times are
// on Redis's clock. The deadline is that of ctx.
func ListControls(ctx context.Context, client redis.UniversalClient, namespace string) (controls []published.Control, err error) {
	defer wrapError(&err, "list controls")
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, err
	}
	layout := published.NewLayout(namespace)
	mark, err := readControlMark(ctx, client, layout)
	if err == nil && mark.fields > maxControlFields {
		err = ErrForeign
	}
	if err != nil || mark.fields == 0 {
		return nil, err
	}
	set, err := readControls(ctx, client, layout)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(set.controls, func(c published.Control) bool { return !c.Until.After(set.readAt) }), nil
}

// maxControlFields bounds the fields of a hash that is read as controls. Reading many more would
// hold up Redis, and this program never writes more.
const maxControlFields = 2 * published.MaxControls

// controlMark identifies a state of the controls in Redis.
type controlMark struct {
	version string // empty if there are none
	fields  int64  // number of fields of the hash, including the version
}

// readControlMark reads the mark, in one small transaction.
func readControlMark(ctx context.Context, client redis.UniversalClient, layout published.Layout) (controlMark, error) {
	var version *redis.SliceCmd
	var fields *redis.IntCmd
	err := Transact(ctx, client, func(tx redis.Pipeliner) {
		version = tx.HMGet(ctx, layout.Control, published.ControlVersionField)
		fields = tx.HLen(ctx, layout.Control)
	})
	if err != nil {
		return controlMark{}, err
	}
	m := controlMark{fields: fields.Val()}
	if len(version.Val()) == 1 {
		m.version, _ = version.Val()[0].(string)
	}
	return m, nil
}

// controlSet holds the controls in Redis at one instant.
type controlSet struct {
	controlMark
	readAt     time.Time // on Redis's clock
	controls   []published.Control
	unreadable int
}

func readControls(ctx context.Context, client redis.UniversalClient, layout published.Layout) (controlSet, error) {
	var fields *redis.MapStringStringCmd
	var clock *redis.TimeCmd
	err := Transact(ctx, client, func(tx redis.Pipeliner) {
		fields = tx.HGetAll(ctx, layout.Control)
		clock = tx.Time(ctx)
	})
	if err != nil {
		return controlSet{}, err
	}
	set := controlSet{readAt: clock.Val()}
	set.fields = int64(len(fields.Val()))
	for field, value := range fields.Val() {
		if field == published.ControlVersionField {
			set.version = value
		} else if c, err := published.ParseControl(field, []byte(value)); err != nil {
			set.unreadable++
		} else {
			set.controls = append(set.controls, c)
		}
	}
	slices.SortFunc(set.controls, func(a, b published.Control) int { return a.Key.Compare(b.Key) })
	if len(set.controls) > published.MaxControls {
		set.unreadable += len(set.controls) - published.MaxControls
		set.controls = set.controls[:published.MaxControls]
	}
	return set, nil
}

// controlEvent is a change of the controls. The expiry of a control is no event: its Until has
// passed.
type controlEvent struct {
	ID string // unique in the namespace; later events have higher ones
	published.ControlChange
}

// maxControlEvents is the approximate number of control changes that are kept.
const maxControlEvents = 10_000

// readControlEvents returns the changes of the controls after the one with this ID, the oldest
// first. If there are more than n, it returns the newest n, and likewise if the ID is empty. It
// omits unreadable changes. The deadline is that of ctx.
func readControlEvents(ctx context.Context, client redis.UniversalClient, layout published.Layout, after string, n int) (events []controlEvent, err error) {
	start := cmp.Or(after, "-")
	messages, err := client.XRevRangeN(ctx, layout.ControlEvents, "+", start, int64(n)).Result()
	switch {
	case isWrongType(err):
		return nil, ErrForeign
	case err != nil && !errors.Is(err, redis.Nil):
		return nil, err
	}
	for _, m := range slices.Backward(messages) {
		text, _ := m.Values["change"].(string)
		if change, err := published.ParseControlChange([]byte(text)); err == nil && m.ID != after {
			events = append(events, controlEvent{m.ID, change})
		}
	}
	return events, nil
}
