// Package aggregator turns counts from all instances into the set of hot keys.
//
// The data flows one way:
//
//	source ─► decode ─► feed ─► shard by key hash ─► windows ─► detector ─► Publisher
//
// A source (statsdsource, kafkasource, graphitesource) reads packets, and package decode
// turns them into counts with the time that their meta line names, by our clock. A
// [Detector] keeps each key's window in panes and evaluates the key's rule on every add;
// [Shards] are several that share the keys. The source runs them, with a [Publisher].
//
// What is claimed: the low count of a key was really reported for a time within
// one window, so a key that is called hot did reach the threshold. While the
// memory budget is not full every key is counted exactly. Beyond it the key
// with the smallest count makes room, what is known of it is kept as a bound,
// and a key's high count adds that bound, and what the collectors can hide.
// What was sampled counts as what it stands for: then low and high bound that, and
// what is published as low is what was seen. A key
// is hot when its low count passes a threshold, suspect when only its high count
// does, and cools when its high count is below the exit. What a key is compared
// with is taken at its highest to call the key hot, and at its lowest to cool it.
//
// The files, in the order of the data:
//
//   - memory.go · shards.go feed.go batch.go shard.go part.go who counts which keys
//   - detector.go handler.go fetch.go what a detector takes in · view.go the windows of a
//     rule, which are those of internal/window · watched.go a key that is hot or suspect
//   - threshold.go top.go what a key needs, ratio.go by how much it has that
//   - enter.go closing.go what a count, and a pane's end, change, hot.go what is published of it · suspects.go what may be hot
//   - family.go heirs.go attribution.go which hot keys are listed · usual.go kin.go which are as always ·
//     origins.go where they come from · meter.go their rate
//   - verdict.go the account of it · adopt.go keys that another detector found
package aggregator
