package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// The last has all characters that are escaped in a URL, a key or a line.
var terms = []string{"phone", "50% off: *été* 7.5\" a+b/c|d@e#f,g;h~i_j-k"}

// The programs of examples/producers each count one search for the same terms. A term is hot when
// the counts of all programs are together in one partition, under one name.
func testCounts(t *testing.T, k *real.KafkaCluster) {
	hot := &hotSet{keys: make(map[string]bool)}
	runSource(t, k, hot)
	for i := range languages {
		if found := hot.names(); len(found) > 0 {
			t.Errorf("hot before %s counted: %q", languages[i].name, found)
		}
		for _, term := range terms {
			languages[i].runExample(t, k, term)
		}
	}
	var want []string
	for _, term := range terms {
		key := rules.Key{Rule: "search-terms", Text: rules.Text("GET /search", rules.Param{Name: "q", Value: term})}
		want = append(want, key.String())
	}
	slices.Sort(want)
	testenv.Within(t, patience, fmt.Sprintf("%q are hot", want), func() bool { return slices.Equal(hot.names(), want) }, func() any { return hot.names() })
}

func runSource(t *testing.T, k *real.KafkaCluster, hot *hotSet) {
	t.Helper()
	file, err := config.Parse("docs/PRODUCERS.md", []byte(hotAt(t, len(languages))))
	if err != nil {
		t.Fatal(err)
	}
	source := kafkasource.New(kafkasource.Config{
		Connection: kafka.Connection{Brokers: k.Addrs()},
		Rules:      file.Rules,
		Publisher:  func(int32) (kafkasource.PartitionPublisher, error) { return hot, nil },
	})
	t.Cleanup(func() {
		if s := source.Stats(); s.NoHeaders != int64(len(terms)*len(languages)) || s.BadHeaders+s.Foreign > 0 {
			t.Errorf("%d records without headers, %d bad, %d foreign; want %d, 0, 0",
				s.NoHeaders, s.BadHeaders, s.Foreign, len(terms)*len(languages))
		}
	})
	testenv.Running(t, source.Run)
}

// hotSet is the publisher of all partitions. It keeps the hot keys.
type hotSet struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (s *hotSet) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.keys))
}

func (s *hotSet) Publish(c published.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range c.Hot {
		s.keys[h.String()] = true
	}
	for _, h := range c.Cool {
		delete(s.keys, h.String())
	}
}

func (s *hotSet) Refresh(int, []published.Hot)   {}
func (s *hotSet) Suspects(int, []published.Hot)  {}
func (s *hotSet) Instances([]published.Instance) {}
func (s *hotSet) Adopt(context.Context) ([]published.Hot, time.Time, error) {
	return nil, time.Time{}, nil
}
func (s *hotSet) Judged(time.Time)              {}
func (s *hotSet) Run(ctx context.Context) error { <-ctx.Done(); return nil }
