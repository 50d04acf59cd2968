package kafkasource

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/kafka"
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
	c := &s.cfg.Connection
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.RequestTimeoutOverhead(c.Timeout),
		kgo.MetadataMaxAge(knowledgeAge),
		kgo.MetadataMinAge(staleAge),
		kgo.RetryBackoffFn(retryBackoff),
		kgo.DisableClientMetrics(),
	}
	if c.Version != "" {
		versions := kversion.FromString(c.Version)
		if versions == nil {
			return nil, fmt.Errorf("kafka source: version %q is unknown: write it as \"3.6\"", c.Version)
		}
		opts = append(opts, kgo.MaxVersions(versions))
	}
	var private *tls.Config
	if c.TLS != nil {
		var err error
		if private, err = c.TLS.Config(); err != nil {
			return nil, fmt.Errorf("kafka source: %w", err)
		}
	}
	opts = append(opts, kgo.Dialer(dialer(c.Timeout, private)))
	if c.SASL != nil {
		if _, err := c.SASL.Secret(); err != nil {
			return nil, fmt.Errorf("kafka source: %w", err)
		}
		opts = append(opts, kgo.SASL(mechanism(c.SASL)))
	}
	client, err := kgo.NewClient(slices.Concat(opts, more, s.extra)...)
	if err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	return client, nil
}

// retryBackoff returns a short wait, since a partition has a new leader within a second.
func retryBackoff(failures int) time.Duration {
	return base.Backoff(failures, 50*time.Millisecond, staleAge)
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

// mechanism returns the SASL mechanism of c. It reads the password again for each connection, so
// that it can be changed while the source runs. The configuration has been validated.
func mechanism(c *kafka.SASL) sasl.Mechanism {
	if strings.EqualFold(c.Mechanism, "PLAIN") {
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			secret, err := c.Secret()
			return plain.Auth{User: c.User, Pass: secret}, err
		})
	}
	auth := func(context.Context) (scram.Auth, error) {
		secret, err := c.Secret()
		return scram.Auth{User: c.User, Pass: secret}, err
	}
	if strings.EqualFold(c.Mechanism, "SCRAM-SHA-256") {
		return scram.Sha256(auth)
	}
	return scram.Sha512(auth)
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
