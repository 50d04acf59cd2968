// Package aggregator turns counts from all instances into the set of hot keys.
//
// The data flows one way:
//
//	source ─► decode ─► feed ─► shard by key hash ─► windows ─► detector ─► Publisher
//
// A source (statsdsource, kafkasource, graphitesource) reads packets, and package decode turns
// them into counts, each with a time by our clock. A [Detector] counts each key in windows of
// panes and evaluates the key's rule on every count. [Shards] are several detectors that share
// the keys. The source runs them, with a [Publisher].
//
// The low count of a key was really reported for a time within one window, so a key that is
// called hot did reach its threshold. While the memory budget is not full, every key is counted
// exactly. When it is full, the key with the smallest count is evicted, and its count is kept
// as a bound. The high count of a key adds that bound and the counts that collectors can hide.
// A sampled count counts as its estimate: low and high then bound the estimate, and the
// published low is the count in the samples.
//
// A key is hot when its low count reaches a threshold, and suspect when only its high count
// does. It cools when its high count is below the exit. A reference that a key is compared with
// is taken at its highest to call the key hot, and at its lowest to cool it.
//
// The files, in the order of the data. Each calls only those after it:
//
//   - shards.go feed.go shard.go batch.go which detector counts which keys
//   - handler.go reports of a decoder · count.go a count
//   - advance.go time · suspects.go suspects among all keys · near.go the
//     keys nearest to being hot
//   - judge.go whether a key becomes hot or suspect · cool.go the end of a pane, and whether a
//     key cools · adopt.go it was hot in another detector · snapshot.go resumed.go the state of
//     another one
//   - reload.go keephot.go a change of rules while running
//   - attribution.go heirs.go which hot keys are listed · usual.go which are as always ·
//     kin.go family.go which of them share requests
//   - tops.go the keys that count most, second by second
//   - costs.go costly.go rules that find keys by their cost, which have no windows: a judge of
//     package blame decides by the usage that instances report · capacity.go what their routes serve
//   - detector.go a detector and its results · stats.go · account.go one key explained ·
//     hot.go the published state of a key
//   - view.go the windows of a rule · watched.go a key that is hot or suspect ·
//     threshold.go the counts that it needs · days.go counts of keys on earlier days
//   - state.go the state of a rule, its windows, thresholds and keys · origins.go meter.go
//     origins of requests, and their rate · skew.go errors of clocks · verdict.go decisions
package aggregator
