// Package rpc passes the calls of an RPC server through a guard, so that rules see methods,
// metadata, peers and the fields of messages.
//
// It is for adapters to RPC frameworks. Applications import the adapter of theirs, such as
// github.com/hotparam/hotparam/adapters/grpc.
//
//	unary call ─► Adapter.Begin ──────────────────► Guard.Begin ─► handler ─► Call.End
//	stream ─────► Adapter.Open ─► Stream.Decide ─┘
//
// call.go has the calls, stream.go the streams, refusal.go the answers to refused ones, and onhot.go
// the unary calls that are answered together.
package rpc
