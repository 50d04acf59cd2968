// Package live is what one can see of a namespace while it runs, all of it read from Redis:
// what is hot, with its line over the last minutes, and what happens.
//
//	event.go         one schema of events
//	position.go      the order of events, and their ids
//	change.go        events of hot keys, from the changes that publishers write
//	heating.go       when a key that is hot is told, and when not again
//	control.go       events of operators' controls
//	words.go         what events say in words
//	tail.go          what was added to the two streams since the last look
//	follower.go      events as they happen, for one reader
//	view.go          the state of a namespace, for many readers
//	read.go          the one exchange with Redis a second
//	history.go       the points of a key's line
//	subscription.go  readers of a view's events, none of which holds up another
//
// Nothing here writes. Whatever replica of the aggregator and whatever terminal looks, it
// sees the same.
package live
