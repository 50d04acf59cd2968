package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
)

// publishers are the publishers of this aggregator's partitions, one for each. They come and go
// with the partitions. The counters of ended publishers are kept.
type publishers struct {
	client  redis.UniversalClient
	history *histories              // nil without one
	config  hotkeys.PublisherConfig // without the owner; its Rules are guarded by mu

	changes changeLog

	mu   sync.Mutex
	live map[*partitionPublisher]struct{}
	gone hotkeys.PublisherStats
}

func newPublishers(client redis.UniversalClient, config hotkeys.PublisherConfig, past *histories) *publishers {
	return &publishers{client: client, history: past, config: config, changes: changeLog{log: config.Logger, outcomes: config.Outcomes}, live: make(map[*partitionPublisher]struct{})}
}

// partitionPublisher is the publisher of one partition. Its statistics are added to all.
type partitionPublisher struct {
	*hotkeys.Publisher
	partition int32
	past      *history.Writer // nil without a history
	all       *publishers
}

// newPublisher returns a publisher for a partition. It owns the partition's part of the set.
func (p *publishers) newPublisher(partition int32) (*partitionPublisher, error) {
	p.mu.Lock()
	config := p.config
	p.mu.Unlock()
	config.Owner = partitionOwner(partition)
	publisher, err := hotkeys.NewPublisher(p.client, config)
	if err != nil {
		return nil, err
	}
	return &partitionPublisher{publisher, partition, p.history.writer(config.Owner, publisher.Publishes), p}, nil
}

// partitionOwner returns the name of the owner that publishes for a partition.
func partitionOwner(partition int32) string { return fmt.Sprintf("kafka-%d", partition) }

// reload sets the rules that share the places in the sets of all publishers.
func (p *publishers) reload(rules []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config.Rules = rules
	for publisher := range p.live {
		publisher.Reload(rules)
	}
}

// Adopt calls the publisher's Adopt. It counts failures in all, as the publisher is not in
// all.live before it runs.
func (p *partitionPublisher) Adopt(ctx context.Context) ([]published.Hot, time.Time, error) {
	hot, judged, err := p.Publisher.Adopt(ctx)
	if err != nil {
		p.all.mu.Lock()
		p.all.gone.Failures++
		p.all.mu.Unlock()
	}
	return hot, judged, err
}

// Publish logs the change and calls the publisher's Publish.
func (p *partitionPublisher) Publish(change published.Change) {
	p.all.changes.write(&change, p.Publisher)
	p.Publisher.Publish(change)
}

// anyPublishes reports whether at least one of the publishers publishes.
func (p *publishers) anyPublishes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for publisher := range p.live {
		if publisher.Publishes() {
			return true
		}
	}
	return false
}

// Run calls the publisher's Run, and keeps its counters after it has ended.
func (p *partitionPublisher) Run(ctx context.Context) error {
	p.all.mu.Lock()
	p.all.live[p] = struct{}{}
	p.all.mu.Unlock()
	defer func() {
		p.all.mu.Lock()
		defer p.all.mu.Unlock()
		delete(p.all.live, p)
		s := p.Stats()
		addCounters(&p.all.gone, s)
		if p.all.gone.Rules == nil {
			p.all.gone.Rules = make(map[string]hotkeys.RulePlaces)
		}
		for rule, places := range s.Rules { // an ended publisher has no keys placed or waiting
			s.Rules[rule] = hotkeys.RulePlaces{Overflow: places.Overflow}
		}
		addPlaces(p.all.gone.Rules, s.Rules)
	}()
	var writing sync.WaitGroup
	writing.Go(func() { _ = p.all.history.run(ctx, partitionOwner(p.partition), p.past) }) // it has no error
	defer writing.Wait()
	return p.Publisher.Run(ctx)
}

// stats returns the sums of the publishers' counters and gauges. Connected is true if all are
// connected. FencedBy and Trouble are those of the lowest partition that has any.
func (p *publishers) stats() hotkeys.PublisherStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.gone
	sum.Rules = make(map[string]hotkeys.RulePlaces)
	for _, rule := range p.config.Rules {
		sum.Rules[rule] = hotkeys.RulePlaces{}
	}
	addPlaces(sum.Rules, p.gone.Rules)
	sum.Connected = true
	fenced, trouble := make(map[int32]string), make(map[int32]string)
	for publisher := range p.live {
		s := publisher.Stats()
		addCounters(&sum, s)
		addPlaces(sum.Rules, s.Rules)
		sum.Keys += s.Keys
		sum.Waiting += s.Waiting
		sum.Unpublishable += s.Unpublishable
		sum.Suspects += s.Suspects
		sum.Instances = max(sum.Instances, s.Instances) // each publisher counts all instances
		sum.Connected = sum.Connected && s.Connected
		if s.FencedBy != "" {
			fenced[publisher.partition] = s.FencedBy
		}
		if s.Trouble != "" {
			trouble[publisher.partition] = s.Trouble
		}
	}
	sum.FencedBy, sum.Trouble = firstPartition(fenced), firstPartition(trouble)
	return sum
}

func addPlaces(sum, rules map[string]hotkeys.RulePlaces) {
	for rule, places := range rules {
		s := sum[rule]
		s.Placed += places.Placed
		s.Waiting += places.Waiting
		s.Overflow += places.Overflow
		sum[rule] = s
	}
}

// firstPartition returns the text of the lowest partition and the number of partitions with one.
func firstPartition(words map[int32]string) string {
	if len(words) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(words)))
	return fmt.Sprintf("%s (partition %d, one of %d)", words[first], first, len(words))
}

func addCounters(sum *hotkeys.PublisherStats, s hotkeys.PublisherStats) {
	sum.Overflow += s.Overflow
	sum.Refused += s.Refused
	sum.Changes += s.Changes
	sum.Renewals += s.Renewals
	sum.Pruned += s.Pruned
	sum.Rewrites += s.Rewrites
	sum.Failures += s.Failures
	sum.Unreadable += s.Unreadable
	sum.SuspectsOverflow += s.SuspectsOverflow
	sum.Takeovers += s.Takeovers
	sum.Healed.Add(s.Healed)
}
