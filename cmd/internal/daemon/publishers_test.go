package daemon

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// The counters of publishers whose partitions have gone remain in the sum.
func TestAddCounters(t *testing.T) {
	var one, sum hotkeys.PublisherStats
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.Uint64 {
			fields.Field(i).SetUint(1)
		}
	}
	for i := range one.Healed {
		one.Healed[i] = 1
	}
	addCounters(&sum, one)
	addCounters(&sum, one)
	for name, n := range sum.Healed.All() {
		if n != 2 {
			t.Errorf("Healed %s: %d, want 2", name, n)
		}
	}
	for i := range fields.NumField() {
		if got := reflect.ValueOf(sum).Field(i); got.Kind() == reflect.Uint64 && got.Uint() != 2 {
			t.Errorf("%s: %d, want 2", fields.Type().Field(i).Name, got.Uint())
		}
	}
}

// The places of all partitions are added up by rule. The places of a partition that has gone do
// not count any longer, but its overflows do.
func TestPublishersAddUpPlaces(t *testing.T) {
	client, err := hotkeys.NewClient("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all := newPublishers(client, hotkeys.PublisherConfig{Namespace: "shop", Cap: 2, Rules: []string{"a", "b"}}, nil)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for partition := range int32(2) {
		p, err := all.newPublisher(partition)
		if err != nil {
			t.Fatal(err)
		}
		var hot []published.Hot
		for i := range 5 {
			hot = append(hot, published.Hot{Key: rules.Key{Rule: "a", Text: fmt.Sprint(i)}, High: 1, Ratio: 1, Since: time.Now()})
		}
		p.Publish(published.Change{Hot: hot})
		p.Refresh(0, hot)
		running.Go(func() { _ = p.Run(ctx) })
	}
	testenv.Eventually(t, "the places are added up", func() bool {
		s := all.stats()
		return s.Waiting == 6 && s.Rules["a"] == hotkeys.RulePlaces{Placed: 4, Waiting: 6, Overflow: 6} && len(s.Rules) == 2
	})
	if s := all.stats(); placesWords(&s) != "; the published set is full, hot keys wait for a place: 6 of a" {
		t.Errorf("%q", placesWords(&s))
	}
	end()
	running.Wait()
	if s := all.stats(); s.Waiting != 0 || s.Rules["a"] != (hotkeys.RulePlaces{Overflow: 6}) || placesWords(&s) != "" {
		t.Errorf("%+v when all are gone", s)
	}
}
