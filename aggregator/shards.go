package aggregator

import (
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Shards are detectors that share the keys and work in parallel, for sources with several
// readers. Each reader has a [Feed].
type Shards struct {
	shards []*shard
	feeds  []*feed
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
func (s *Shards) Feed(reader int) Feed { return s.feeds[reader] }

// Reload puts other rules in force, numbered as [decode.Numbered.Next] numbers them after the
// current ones: in all shards at the same place in the order of the counts. No feed may be used
// during the call. It waits until all counts that the feeds have passed on are counted.
func (s *Shards) Reload(n *decode.Numbered, now time.Time) {
	all := homes(n.ByNumber(), len(s.shards))
	for _, shard := range s.shards {
		shard.lockIdle()
		defer shard.mu.Unlock()
	}
	left := make([][]published.Hot, len(s.shards))
	var reloading sync.WaitGroup
	for i, shard := range s.shards {
		reloading.Go(func() { left[i] = shard.reload(n, all, now) })
	}
	reloading.Wait()
	for _, f := range s.feeds {
		f.homes = all
	}
	to, _ := s.placeHot(n, slices.Concat(left...))
	for i, hot := range to {
		if len(hot) > 0 {
			s.shards[i].detector.TakeOver(hot, now)
		}
	}
	for _, shard := range s.shards {
		shard.storeStats()
	}
}

// Inherit makes keys hot that another process published, each in the shard that counts it
// ([Detector.Inherit]). It returns the keys whose rule no longer finds hot keys. It must not be
// called during a reload.
func (s *Shards) Inherit(n *decode.Numbered, all []published.Hot, now time.Time) (gone []published.Hot) {
	to, gone := s.placeHot(n, all)
	for i, hot := range to {
		if len(hot) > 0 {
			s.shards[i].inheritHot(hot, now)
		}
	}
	return gone
}

// placeHot sorts hot keys by the shard that counts them. gone are the keys that no shard
// counts.
func (s *Shards) placeHot(n *decode.Numbered, hot []published.Hot) (to [][]published.Hot, gone []published.Hot) {
	to = make([][]published.Hot, len(s.shards))
	for _, h := range hot {
		number := n.NumberOf(h.Rule)
		if number < 0 {
			gone = append(gone, h)
			continue
		}
		shard := s.feeds[0].place(number, rules.Hash([]byte(h.Text)))
		to[shard] = append(to[shard], h)
	}
	return to, gone
}

// Run counts the batches that readers do not count themselves. It returns after [Shards.Close],
// when all are counted.
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
