// Package live shows the state of a namespace while it runs, read from Redis alone: the hot
// keys, each with its history of the last minutes, and the events.
//
//	event.go         one schema of events
//	position.go      the order of events, and their ids
//	change.go        events of hot keys, from the changes that publishers write
//	heating.go       which events of hot keys are reported, and which repeat earlier ones
//	control.go       events of operators' controls
//	tail.go          the additions to the two streams since the last read
//	follower.go      events as they happen, for one reader
//	view.go          the state of a namespace, for many readers
//	read.go          the one exchange with Redis a second
//	history.go       the points of a key, effect.go what an action would have done in them
//	backlog.go       the newest events of a view, for any number of readers
//
// This package only reads, so every replica of the aggregator and every terminal shows the same.
package live
