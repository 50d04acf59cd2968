package kafkasource

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/kafkaclient"
)

const (
	// fetchWait is how long a broker waits for fetchLeast bytes before it answers a fetch. If
	// brokers answered at the first record, each record of an instance would cost a fetch: half
	// of the aggregator's cost with six instances. So a fetch collects the records of some
	// milliseconds.
	fetchWait  = 10 * time.Millisecond
	fetchLeast = 1 << 20
	// fetchBytes and partitionBytes bound the compressed size of one fetch.
	fetchBytes     = 16 << 20
	partitionBytes = 1 << 20
	// recordBatch bounds the decompressed size of a batch. It is more than any broker accepts by
	// default.
	recordBatch = 64 << 20
	// knowledgeAge is how soon new partitions are noticed. staleAge is the least time between
	// two requests to the brokers for the leaders of partitions.
	knowledgeAge = 30 * time.Second
	staleAge     = 250 * time.Millisecond
)

// connect returns a new client, which dials on first use.
func (s *Source) connect(more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := kafkaclient.Options(&s.cfg.Connection)
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	client, err := kgo.NewClient(slices.Concat(opts, []kgo.Opt{kgo.MetadataMaxAge(knowledgeAge), kgo.MetadataMinAge(staleAge)}, more, s.extra)...)
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	return client, nil
}

// retryFor returns how long the group's client retries a request. A heartbeat is retried for
// longer than the session. If the coordinator has died, its successor takes over the members
// unchanged, while a member that had given up would have to join again and read everything
// again. If others have the partitions by then, they have fenced us off.
func (s *Source) retryFor(key int16) time.Duration {
	switch kmsg.Key(key) {
	case kmsg.JoinGroup, kmsg.SyncGroup:
		return s.cfg.Session
	default:
		return 30 * time.Second
	}
}

// groupOptions returns the options of a client that joins the group. Once the watchdog has
// replaced the client, its callbacks no longer change which partitions we have.
func (s *Source) groupOptions(dog *watchdog) []kgo.Opt {
	unlessReplaced := func(f func(context.Context, *kgo.Client, map[string][]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
			if !dog.replaced.Load() {
				f(ctx, client, partitions)
			}
		}
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.cfg.Group),
		kgo.ConsumeTopics(s.cfg.Topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(s.cfg.Session),
		kgo.HeartbeatInterval(s.cfg.Session / 5),
		// A member that misses a rebalance is removed as soon as a member that is silent.
		kgo.RebalanceTimeout(s.cfg.Session),
		kgo.RetryTimeoutFn(s.retryFor),
		// A batch belongs to the assignment under which it was fetched. No assignment may happen
		// before the batch is with its worker.
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(s.seek),
		kgo.DisableAutoCommit(), // commit.go does that
		kgo.OnPartitionsAssigned(unlessReplaced(s.assigned)),
		kgo.OnPartitionsRevoked(unlessReplaced(s.revoked)),
		kgo.OnPartitionsLost(unlessReplaced(s.onLost)),
		kgo.WithHooks(dog),
		// After a log was truncated, records are not read twice.
		kgo.ConsumeResetOffset(kgo.RewindOffset(0)),
		kgo.FetchMinBytes(fetchLeast),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(partitionBytes),
		kgo.MaxDecompressBatchBytes(recordBatch),
		// Control records count as read. Without them the end of a partition would not be
		// reached.
		kgo.KeepControlRecords(),
	}
	if s.cfg.Member != "" {
		opts = append(opts, kgo.InstanceID(s.cfg.Member))
	}
	return opts
}
