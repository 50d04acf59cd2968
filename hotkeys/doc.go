// Package hotkeys holds the published set of hot keys: its layout in Redis, the
// [Publisher] that writes it, and the [Watcher] that follows it and fills the
// [hotset.Set] that the request path reads.
//
//	aggregator ─► Publisher ══► Redis ══► Watcher ─► hotset.Set ◄─ request path
//
// A change of the set is one script: it checks that the writer still owns its
// part of the set (the epoch), writes, raises the version, appends the change
// to a stream and publishes it. The push is a hint; the watcher's poll of the
// version, each second, is the truth. What a watcher missed it reads from the
// stream, or it reads the whole set.
//
// Every entry has an end: the earlier of its own and the heartbeat's, on
// Redis's clock, turned into a deadline on the monotonic clock of the process
// that holds to it. So when the aggregator dies, or Redis cannot be reached,
// limits fade by themselves.
//
// With each renewal the publisher also tells what the fleet needs to know
// besides: which keys are suspect, so that instances send them exactly, and how
// many instances there are. New suspects are pushed at once. None of this
// changes the version.
//
// All scripts run on Redis 5 and later, and on miniredis.
package hotkeys
