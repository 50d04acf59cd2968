// Package aggregator turns counts from all instances into the set of hot keys.
//
// The data flows one way:
//
//	source ─► decoder ─► shard by key hash ─► windows ─► detector ─► Publisher
//
// A source (our own StatsD listener) reads packets, the decoder turns them into
// [Count]s with the time that their meta line names, and one goroutine owns one
// shard of the keys, with no lock: it keeps each key's window in panes and
// evaluates the key's rule on every add.
//
// What is claimed: the low count of a key was really reported for a time within
// one window, so a key that is called hot did reach the threshold. While the
// memory budget is not full every key is counted exactly. Beyond it the key
// with the smallest count makes room, what is known of it is kept as a bound,
// and a key's high count adds that bound.
package aggregator
