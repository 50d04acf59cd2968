// Package published has what is published of hot keys: the keys, their controls and the members,
// and the encoding of these values in Redis. Parsers check each bound, guess nothing, and never
// panic.
//
//	layout.go        the keys in Redis
//	hot.go           hot keys, and changes of their set
//	cause.go         the threshold that made a key hot
//	info.go          the cause of a hot key, and where its requests come from
//	outcomes.go      what became of a hot key's requests, over all instances
//	hold.go          how a key that is hot by its cost is held, and why
//	change.go        a change of the set or of the suspects, the version and the heartbeat after it
//	summary.go       the keys nearest to being hot, and the traffic of the rules
//	control.go       operators' controls of keys
//	invalidation.go  answers that instances may no longer use
//	member.go        heartbeats of instances and aggregators; admitted.go what instances admitted
//	rights.go        the commands that Redis users need
package published
