package aggregator

import "sync"

// Shards are detectors that share the keys and work in parallel, for sources with several
// readers. Each reader has a [Feed].
type Shards struct {
	shards []*shard
	feeds  []*Feed
}

// NewShards returns n detectors for a number of readers. It sets Part, Parts and Homes of the
// configuration.
func NewShards(c DetectorConfig, n, readers int) *Shards {
	s := new(Shards)
	c.Parts, c.Homes = n, nil
	for c.Part = range n {
		s.shards = append(s.shards, newShard(NewDetector(c), readers))
	}
	s.feeds = newFeeds(s.shards, c.Rules)
	return s
}

// Feed returns the feed of the reader with this number.
func (s *Shards) Feed(reader int) *Feed { return s.feeds[reader] }

// Run counts what readers do not count themselves. It returns after [Shards.Close], when all
// is counted.
func (s *Shards) Run() {
	var running sync.WaitGroup
	for _, shard := range s.shards {
		running.Go(shard.run)
	}
	running.Wait()
}

// Close ends Run. It must be called once, when no feed is used any more.
func (s *Shards) Close() {
	for _, shard := range s.shards {
		close(shard.queue)
	}
}

// Stats returns the sum over the shards, at most a second old. It is safe for concurrent
// use.
func (s *Shards) Stats() (all DetectorStats) {
	for _, shard := range s.shards {
		all.Merge(shard.stats.Load())
	}
	return all
}
