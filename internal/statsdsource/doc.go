// Package statsdsource listens for StatsD lines, over UDP, TCP and Unix sockets, and finds the
// hot keys in the counts of all instances.
//
//	socket ─► reader ─► decoder ─► feed ─► shards of detectors ─► Publisher
//
// Each packet socket has a reader, and all connections together have one. A reader does the
// shards' work itself, unless it is behind and processors are idle. On Linux a reader of packets
// blocks its thread.
//
// The files, in the order of the data:
//
//   - source.go listener.go the addresses and their readers · listen_packets.go
//     listen_stream.go listen_share_*.go listen_unix.go socket_*.go sockets
//   - reader.go receive_*.go nap_*.go packets, many at a time · drops_*.go packets dropped by
//     the system
//   - accept.go streams.go framer.go connections
//   - reload.go other rules while running · stats.go
//     limits.go · snapshot.go the state that the next process continues from
package statsdsource
