// Package spoe implements the door for HAProxy: an agent of the Stream Processing Offload
// Protocol (SPOP 2.0, doc/SPOE.txt of HAProxy). HAProxy describes a request in a NOTIFY frame.
// The door sets variables in an ACK frame, by which HAProxy's configuration passes the request or
// responds in place of the application.
//
// Files, in the order in which data passes them:
//
//	value.go    numbers, strings and typed values on the wire
//	frame.go    frames, and the statuses by which a connection ends
//	hello.go    the handshake
//	message.go  the messages of a NOTIFY, and their arguments
//	headers.go  headers in HAProxy's formats
//	answer.go   the variables of a decision
//	decide.go   the handling of each message
//	conn.go     one connection: frames in, acknowledgements out in any order
//	door.go     the listener and its limits
//
// The door needs little of the protocol: a handshake and one kind of frame each way. It does not
// announce support for fragments, and refuses them. Libraries were considered, and none is used.
// github.com/criteo/haproxy-spoe-go is archived and names github.com/negasus/haproxy-spoe-go as
// its successor, which is no longer maintained either. The fork of that needs a replace
// directive, which a module that others require cannot have.
// github.com/DropMorePackets/haproxy-go reads a connection without a deadline, starts workers
// for each that do not end with it, drops the in-flight requests at the end, and panics at a
// second handshake. So the bounds, which are most of this package, would have to be written
// around it anyway.
package spoe
