// Package hotkeys holds the published set of hot keys: its layout in Redis, the
// [Publisher] that writes it, and the [Watcher] that follows it and fills the
// [hotset.Set] that the request path reads.
//
//	aggregator ─► Publisher ══► Redis ══► Watcher ─► hotset.Set ◄─ request path
//
// A change of the set is one script. It checks the epoch, to fence off a writer that
// no longer owns its part of the set, writes, raises the version, appends the change to
// a stream and publishes it. The push is a hint. The version, which the watcher polls
// each second, is authoritative: a watcher that missed changes reads them from the
// stream, or reads the whole set.
//
// An entry expires at its own end or at the heartbeat's, whichever is earlier. Both are
// on Redis's clock; each process turns them into deadlines on its own monotonic clock.
// So if the aggregator dies, or Redis cannot be reached, limits expire by themselves, unless the
// watcher holds them for longer ([Watcher.SetHold]).
//
// Each renewal also publishes the suspects, which instances then send exactly, and the
// number of instances. New suspects are pushed at once. None of this changes the
// version.
//
// The scripts run on Redis 5 and later, and on miniredis.
//
// # Files
//
//   - layout.go: the keys in Redis. scripts.go and lua/: what is run there.
//   - publisher.go, publisher_config.go: what callers report. desired.go, places.go: which hot keys are
//     published. reload.go: other rules. suspected.go: which suspects and instances are.
//   - writer.go: the publisher's goroutine. call.go, renewal.go, schedule.go: its calls.
//     adopt.go, lease.go, standby.go: who owns a part of the set. trouble.go, outage.go, healed.go:
//     failures, and foreign values in Redis.
//   - watcher.go, lastminute.go: the watcher. subscribe.go, subscription.go, hints.go: pushes. follow.go, load.go,
//     transact.go, offset.go: polls and reads. state.go, fleet.go: the set as last read. hold.go: what
//     stays in force without a publisher.
//   - control.go, operate.go: what operators say of keys. control_watcher.go,
//     control_subscribe.go: instances obey it.
//   - heartbeat.go, members.go, differing.go: what instances and aggregators say of themselves.
//   - snapshot.go, baselines.go: what an aggregator keeps in Redis for the next one.
//   - list.go, namespaces.go: the set for people. client*.go, credentials.go: how to
//     reach Redis, and what it must allow.
package hotkeys
