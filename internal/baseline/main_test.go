package baseline

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// memory is a store in memory that can be made to fail.
type memory struct {
	mu     sync.Mutex
	failed bool
	values map[int64]map[string][]byte
	writes int
	reads  int
}

var errAway = errors.New("away")

func (m *memory) Read(_ context.Context, hours []int64) (map[int64]map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return nil, errAway
	}
	m.reads += len(hours)
	found := make(map[int64]map[string][]byte)
	for _, hour := range hours {
		if parts := m.values[hour]; parts != nil {
			found[hour] = maps.Clone(parts)
		}
	}
	return found, nil
}

func (m *memory) Write(_ context.Context, hour int64, part string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return errAway
	}
	m.writes++
	if m.values == nil {
		m.values = make(map[int64]map[string][]byte)
	}
	if m.values[hour] == nil {
		m.values[hour] = make(map[string][]byte)
	}
	m.values[hour][part] = value
	return nil
}

func (m *memory) fail(failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = failed
}

func (m *memory) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

const testRule = 7

// hourWith returns an hour with one key, in which so many seconds were counted.
func hourWith(number, seconds int64, key uint64, n int64) *Hour {
	return &Hour{Number: number, Rules: []RuleHour{NewRuleHour(testRule, seconds, 1, []KeyCount{{key, n}}, 10)}}
}

var monday = HourOf(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
