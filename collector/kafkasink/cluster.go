package kafkasink

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/kafkaclient"
	"github.com/hotparam/hotparam/kafka"
)

// cluster has the data to reach the cluster and to send records.
type cluster struct {
	kafka.Connection
	common []kgo.Opt // result of [kafkaclient.Options]
	extra  []kgo.Opt // further options of all clients

	acks        string
	idempotent  bool
	compression string
}

// newest has the newest versions of the protocol that are used. They are the last that address
// topics by name, so a topic that was made again is found. All later brokers support them, with the
// same records. For older brokers, older versions are used.
var newest = kversion.V2_7_0()

// Versions of the produce request: the first whose records have headers, and the first whose
// records may be compressed by zstd.
const (
	withHeaders = 3
	withZstd    = 7
)

// produceVersion returns the newest version of the produce request in v.
func produceVersion(v *kversion.Versions) int16 {
	n, _ := v.LookupMaxKeyVersion(int16(kmsg.Produce))
	return n
}

func newCluster(c *Config) (cluster, error) {
	k := cluster{Connection: c.Connection, acks: c.Acks, idempotent: c.Idempotent, compression: c.Compression}
	var err error
	if k.common, err = kafkaclient.Options(&k.Connection); err != nil {
		return k, err
	}
	k.extra = []kgo.Opt{kgo.MetadataMinAge(retryAfter)}
	produce := produceVersion(newest)
	if version := c.Connection.Version; version != "" {
		produce = min(produce, produceVersion(kversion.FromString(version)))
	}
	switch {
	case produce < withHeaders:
		return k, fmt.Errorf("Connection.Version %s is too old: records have headers since 0.11.0", c.Connection.Version)
	case k.compression == Zstd && produce < withZstd:
		return k, fmt.Errorf("Connection.Version %s has no zstd, which came with 2.1: use Compression: LZ4", c.Connection.Version)
	case produce == produceVersion(newest):
		k.extra = append(k.extra, kgo.MaxVersions(newest))
	}
	return k, nil
}

// A record is given up at the age giveUp. Pauses between tries double from retryAfter to
// longestRetry.
const (
	giveUp       = 10 * time.Second
	retryAfter   = 100 * time.Millisecond
	longestRetry = 500 * time.Millisecond
)

// maxBatch bounds a batch to just below the brokers' default maximum.
const maxBatch = 1_000_000

// client returns a client that produces. It dials on first use. Its requests end when ctx ends.
func (k *cluster) client(ctx context.Context, hook kgo.Hook) (*kgo.Client, error) {
	// A failing request tries each broker once. The caller retries after that.
	return kgo.NewClient(slices.Concat(k.common, k.extra, k.producing(), []kgo.Opt{kgo.WithContext(ctx), kgo.WithHooks(hook), kgo.RequestRetries(len(k.Brokers))})...)
}

// Check returns an error if the sink could not send now. The error says what to do. Check writes
// nothing, does not wait until Kafka is available, and may be called at any time.
func (s *Sink) Check(ctx context.Context) error {
	k := &s.cluster
	c := kafkaclient.Check{Connection: &k.Connection, Options: k.extra, Topic: s.topic, Operation: kmsg.ACLOperationWrite}
	if k.idempotent {
		c.More = k.assignsID
	}
	return c.Run(ctx)
}

// assignsID returns an error if the cluster assigns no id to an idempotent producer. It retries,
// since a cluster that has just started assigns none for a moment.
func (k *cluster) assignsID(ctx context.Context, b kafkaclient.Broker) error {
	end := time.Now().Add(k.Timeout)
	for failures := 0; ; failures++ {
		request := kmsg.NewPtrInitProducerIDRequest()
		request.ProducerID, request.ProducerEpoch = -1, -1
		response, err := request.RequestWith(ctx, b)
		if err == nil {
			err = kerr.ErrorForCode(response.ErrorCode)
		}
		switch {
		case err == nil:
			return nil
		case kafkaclient.IsOneOf(err, kerr.ClusterAuthorizationFailed):
			return b.MayNot("not write idempotently", "--operation IdempotentWrite --cluster")
		case kafkaclient.IsOneOf(err, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable) && time.Now().Before(end) && ctx.Err() == nil:
			base.WaitBackoff(ctx, failures, retryAfter, longestRetry)
			continue
		}
		return fmt.Errorf("kafka: no id is given to an idempotent producer: %w", kafkaclient.Explain(err))
	}
}

// producing returns the options of a client that sends records. It sends them at once: records
// that arrive while a request is in flight go into the next one. Records of a partition stay in
// order, since a request is retried before the next one is sent.
func (k *cluster) producing() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxBatch),
		kgo.ProduceRequestTimeout(max(k.Timeout/2, minProduceTimeout)),
		kgo.RecordDeliveryTimeout(giveUp),
		kgo.MaxBufferedRecords(math.MaxInt32), // the queue bounds the records
		kgo.ProducerBatchCompression(k.codec()),
	}
	if k.acks == AcksLocal {
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !k.idempotent {
		return append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	// Counts that are seconds old are of little use: duplicates are better than delays.
	return append(opts, kgo.AllowIdempotentProduceCancellation(), kgo.StopProducerOnDataLossDetected())
}

// minProduceTimeout is the minimum time that the client grants a broker for a request.
const minProduceTimeout = 100 * time.Millisecond

func (k *cluster) codec() kgo.CompressionCodec {
	switch k.compression {
	case Zstd:
		return kgo.ZstdCompression().WithLevel(1)
	case LZ4:
		return kgo.Lz4Compression()
	}
	return kgo.NoCompression()
}
