// Package doctor looks at a fleet by what is in Redis, and says what is wrong with it and what
// to do: is Redis reached, with which rights, does an aggregator publish, does it hear the
// instances, are rules and clocks the same, is anything lost, full or about to end.
//
//	Config ─► Examine ─► redis.go ─► rights.go ─► publisher.go ─► members.go ─► controls.go ─► []Finding
//
// It changes nothing but a key of its own, hotparam:{namespace}:doctor, which it deletes, to see
// what the user of Redis may write.
package doctor
