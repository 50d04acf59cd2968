// Package hotkeys holds the published set of hot keys in Redis: the [Publisher] that writes it, and
// the [Watcher] that follows it and fills the [hotset.Set] that the request path reads.
//
//	aggregator ─► Publisher ══► Redis ══► Watcher ─► hotset.Set ◄─ request path
//
// A change of the set is one script. It checks the epoch, to fence off a writer that no longer
// owns its part of the set. Then it writes, raises the version, appends the change to a stream and
// publishes it. The push is a hint. The version, which the watcher polls each second, is
// authoritative: a watcher that missed changes reads them from the stream, or reads the whole set.
//
// An entry expires at its own end or at the heartbeat's, whichever is earlier. Both are on
// Redis's clock; each process turns them into deadlines on its own monotonic clock. So if the
// aggregator dies, or Redis cannot be reached, limits expire, unless the watcher holds them for
// longer ([Watcher.SetHold]).
//
// Each renewal also publishes the suspects, which instances then send exactly, and the
// number of instances. New suspects are pushed at once. None of this changes the
// version.
//
// Apart from the set, instances invalidate answers that others keep in memory ([Invalidator]).
//
// The scripts run on Redis 5 and later, and on miniredis.
//
// # Files
//
//   - scripts.go and lua/: the scripts that Redis runs.
//   - publisher.go, publisher_config.go: the publisher and its callers' reports. desired.go,
//     places.go: the choice of the hot keys to publish. suspected.go: suspects and instances.
//     summary.go: the keys that are nearest to being hot.
//   - publisher_write.go: the publisher's goroutine. call.go, renewal.go: its calls. adopt.go,
//     lease.go: the owner of a part of the set. trouble.go, outage.go: failures, and foreign
//     values in Redis.
//   - poller.go: when a process reads what it follows, after a push or an interval.
//     subscription.go: the pushes.
//   - watcher.go: the watcher. hints.go: pushed changes. follow.go, load.go: polls and reads.
//     state.go, fleet.go: the set as last read. hold.go: hot keys that stay in force without a
//     publisher.
//   - control.go, operate.go: operators' controls of keys. control_watcher.go: how instances
//     follow them.
//   - invalidator*.go, invalidation.go: cached answers that no instance may use any more.
//   - heartbeat.go, measure.go, members.go: heartbeats of instances and aggregators.
//   - snapshot.go: state that an aggregator keeps in Redis for its successor.
//   - list.go, namespaces.go: the set for people. client*.go, credentials.go: clients of Redis,
//     and the rights that they need.
package hotkeys
