// Package webhook posts the events of a namespace to a URL.
//
//	config.go    what it is given, and what it counts
//	sender.go    one of the aggregators sends: the one that holds the right to
//	tenure.go    reads events and keeps the right for as long as it can
//	post.go      one event, or a message of several, until it is taken or given up
//	body.go      the two forms, and the signature
//	lua/         who sends, and up to which event all were sent
package webhook
