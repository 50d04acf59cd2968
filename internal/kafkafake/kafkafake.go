// Package kafkafake is a Kafka of one broker in this process, for programs that run
// with nothing installed: franz-go's kfake, on a free port of the loopback interface.
// It holds its records in memory, and of those the latest.
package kafkafake

import (
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// What is kept: records of the last 30 s, at most some megabytes of a partition.
// Memory is released a segment at a time.
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

// Start starts a broker that has the topics with so many partitions each. Whatever
// is set, records have the time that their producer gives them.
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

// trim applies the retention, which kfake does by itself once an hour.
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

// Addr is the host:port of the broker.
func (b *Broker) Addr() string { return b.cluster.ListenAddrs()[0] }

// Close ends the broker: what it held is gone.
func (b *Broker) Close() {
	b.stop()
	b.stopped.Wait() // a cluster that is closed would not answer it
	b.cluster.Close()
}
