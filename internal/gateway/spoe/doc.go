// Package spoe is the door for HAProxy: an agent of the Stream Processing Offload Protocol
// (SPOP 2.0, doc/SPOE.txt of HAProxy). HAProxy sends what a request is in a NOTIFY frame, and
// the door answers in an ACK frame with variables, by which HAProxy's configuration passes the
// request or answers in place of the application.
//
// Files, in the order of the data:
//
//	value.go    numbers, strings and typed values on the wire
//	frame.go    frames, and the statuses by which a connection ends
//	hello.go    the handshake
//	message.go  the messages of a NOTIFY, and the request that a check is
//	headers.go  headers as HAProxy passes them
//	answer.go   a decision as variables
//	decide.go   what is done for each message
//	conn.go     one connection: frames in, acknowledgements out in any order
//	door.go     the listener, with its bounds
//	stats.go    counters
//
// The protocol has no use for a library: a handshake, one kind of frame each way, and no
// fragments, which the door does not announce and refuses.
package spoe
