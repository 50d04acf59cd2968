// Package published holds the values that Redis has of the published set, of the controls and
// of the members. Parsers check each bound, guess nothing, and never panic.
//
//	info.go     why a key is hot, and where its requests come from
//	change.go   a change of the set or of the suspects, the version and the heartbeat after it
//	control.go  what operators say of keys
//	member.go   what instances and aggregators say of themselves
//	rights.go   the commands that its users need
package published
