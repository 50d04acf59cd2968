// Package webhook posts the events of a namespace to a URL.
//
//	config.go    settings and counters
//	sender.go    one of the aggregators sends: the one that holds the right to
//	tenure.go    reads events and keeps the right for as long as it can
//	post.go      posts one event, or a message of several, until it is accepted or given up
//	body.go      the two forms, and the signature
//	lua/         the right to send, and the position up to which all events were sent
package webhook
