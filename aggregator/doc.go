// Package aggregator turns counts from all instances into the set of hot keys.
//
// The data flows one way:
//
//	source ─► decoder ─► shard by key hash ─► windows ─► detector ─► Publisher
//
// A source (our own StatsD listener, with a reader for each socket) reads packets,
// the decoder turns them into [decode.Count]s with the time that their meta line names, by
// our clock, and whoever has a shard of the keys, for a batch at a time, keeps each
// key's window in panes and evaluates the key's rule on every add.
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
// The detector by file: view.go the windows of a rule · threshold.go what a key
// needs, share.go jump.go top.go the kinds that compare · enter.go closing.go
// what a count, and a pane's end, change · attribution.go origins.go what is
// listed, and where it comes from · totals.go usual.go kin.go repeats.go which is as always ·
// suspects.go · verdict.go the account of it.
package aggregator
