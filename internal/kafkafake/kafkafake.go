// Package kafkafake runs a Kafka of one broker in this process, for programs that run without any
// installation. It is franz-go's kfake, on a free port of the loopback interface. It holds only
// the latest records, in memory.
package kafkafake

import (
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Bounds of the kept records: the last 30 s, and some megabytes per partition. Memory is released
// one segment at a time.
const (
	retention      = 30 * time.Second
	partitionBytes = 4 << 20
	segmentBytes   = 256 << 10
	trimEvery      = time.Second
)

// Broker is the one broker of a cluster. Its methods are safe for concurrent use.
type Broker struct {
	cluster *kfake.Cluster
	stop    func()
	stopped sync.WaitGroup
}

// Start starts a broker with the given topics, which have the given number of partitions each.
// Records always keep their producer's timestamps.
func Start(partitions int, topics ...string) (*Broker, error) {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.SeedTopics(int32(partitions), topics...),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.ms":    fmt.Sprint(retention.Milliseconds()),
			"log.retention.bytes": fmt.Sprint(partitionBytes),
			"log.segment.bytes":   fmt.Sprint(segmentBytes),
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("embedded Kafka: %w", err)
	}
	done := make(chan struct{})
	b := &Broker{cluster: cluster, stop: sync.OnceFunc(func() { close(done) })}
	b.stopped.Go(func() { b.trim(done) })
	return b, nil
}

// trim applies the retention, which kfake on its own applies only once an hour.
func (b *Broker) trim(done <-chan struct{}) {
	ticker := time.NewTicker(trimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			b.cluster.ApplyRetention()
		}
	}
}

// Addr returns the host:port of the broker.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Close stops the broker and drops its records.
func (b *Broker) Close() {
	b.stop()
	b.stopped.Wait() // a closed cluster would not answer trim
	b.cluster.Close()
}
