// Package published holds the encoding of the values in Redis: of the published set, the controls
// and the members. Parsers check each bound, guess nothing, and never panic.
//
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
