package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Query selects a part of the history.
type Query struct {
	From, To time.Time
	// Columns is the most columns of the result, at most [MaxColumns]. Zero means MaxColumns.
	Columns int
	// Rule, Route and Prefix select keys: of a rule, of a route, and whose parameters begin with
	// Prefix. Empty selects all. Key is the whole text of one key, or its parameters. Text selects
	// keys that have it in their rule or their text, in whatever case.
	Rule, Route, Prefix, Key, Text string
}

// ErrNone means that no aggregator has written a history.
var ErrNone = errors.New("there is no history: no aggregator of this namespace writes one (aggregator.history)")

// MaxSpan is the longest time of a [Query].
const MaxSpan = 31 * 24 * time.Hour

// niceSteps are the lengths of columns up to ten minutes. Each is a multiple of the steps of all
// levels that are not longer. Longer ones are multiples of the last.
var niceSteps = []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600}

// stepFor returns the shortest length for a time in at most some columns, which begin at multiples of
// the length.
func stepFor(from, to int64, columns int) int64 {
	fits := func(step int64) bool { return ceil(to, step)-floor(from, step) <= step*int64(columns) }
	for _, step := range niceSteps {
		if fits(step) {
			return step
		}
	}
	last := niceSteps[len(niceSteps)-1]
	step := last
	for !fits(step) {
		step += last
	}
	return step
}

// Check returns an error if the query cannot be answered.
func (q *Query) Check() error {
	span := q.To.Sub(q.From)
	switch {
	case span <= 0:
		return fmt.Errorf("the history from %s to %s: want a beginning before the end", q.From.Format(time.RFC3339), q.To.Format(time.RFC3339))
	case span > MaxSpan:
		return fmt.Errorf("the history of %v: want at most %v", span, MaxSpan)
	case q.Columns < 0 || q.Columns > MaxColumns:
		return fmt.Errorf("%d columns: want 1 to %d", q.Columns, MaxColumns)
	}
	return nil
}

// selects reports whether a key of a rule is selected.
func (q *Query) selects(rule, text string) bool {
	if q.Text != "" && !strings.Contains(strings.ToLower(rule+" "+text), strings.ToLower(q.Text)) {
		return false
	}
	if q.Route == "" && q.Prefix == "" && q.Key == "" {
		return true
	}
	route, params := splitKey(text)
	return (q.Route == "" || route == q.Route) && strings.HasPrefix(params, q.Prefix) &&
		(q.Key == "" || text == q.Key || params == q.Key)
}

// Read returns the history of a time. The deadline is that of ctx. The error is [ErrNone] if there is
// none at all.
func (s *Store) Read(ctx context.Context, q Query) (*View, error) {
	if q.Columns == 0 {
		q.Columns = MaxColumns
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	states, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	if len(states) == 0 {
		return nil, ErrNone
	}
	from, to := q.From.Unix(), q.To.Unix()
	step := stepFor(from, to, q.Columns)
	newest := int64(0)
	for _, state := range states {
		step = max(step, state.stepFrom(from, step))
		newest = max(newest, state.Until)
	}
	c := newCollector(&q, floor(from, step), ceil(to, step), step)
	for owner := range states {
		if err := s.readOwner(ctx, owner, c); err != nil {
			return nil, err
		}
	}
	return c.view(newest), nil
}

// stepFrom returns the length of columns in which there is everything from a time on: a time for
// which finer chunks have been dropped needs longer ones.
func (s *ownerState) stepFrom(from, step int64) int64 {
	earliest := int64(0) // of the levels that the columns allow
	for level := range levels {
		first := s.First[level]
		switch {
		case first == 0 || earliest > 0 && first >= earliest:
			continue
		case steps[level].step > step && earliest > 0 && from >= earliest:
			continue
		}
		earliest, step = first, max(step, steps[level].step)
	}
	return step
}

// readOwner adds an owner's chunks to a collector: the coarsest that its columns allow, and finer ones
// for what these lack.
func (s *Store) readOwner(ctx context.Context, owner string, c *collector) error {
	starts, err := s.starts(ctx, owner)
	if err != nil {
		return err
	}
	c.begin()
	hashes := s.hashes(owner)
	for hash := levels; hash >= 0; hash-- {
		span := int64(1)
		if hash > 0 {
			if steps[hash-1].step > c.step {
				continue
			}
			span = steps[hash-1].span
		}
		var due []int64
		for _, start := range starts[hash] {
			if start < c.to && start+span > c.from && !c.covers(start, start+span) {
				due = append(due, start)
			}
		}
		slices.Sort(due)
		for part := range slices.Chunk(due, readAtOnce) {
			found, _, err := s.read(ctx, hashes[hash], part)
			if err != nil {
				return err
			}
			for _, chunk := range found {
				if chunk != nil {
					c.add(chunk)
				}
			}
		}
	}
	c.finish()
	return nil
}
