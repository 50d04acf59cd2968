// Package statsdsink implements a collector sink that writes StatsD lines over UDP, TCP
// or Unix sockets to one aggregator or several, or to any other StatsD server.
//
//	collector ─► Sink.Send ─► packer ─► socket ══► aggregator
//	               Spread      meta line   dialer
//
// Send writes each count as a line (sink.go; config.go has the settings, rules.go the rules,
// buckets.go the sums by bucket of keys). It passes the line to the packer of the address that
// Config.Spread and the key select (spread.go). A packer joins lines to packets and
// signs them (packer.go). The meta line at the head of each packet states the sender and its
// sums so far. A socket sends a packet within a deadline, or reports that it failed
// (socket.go). Connections are made in the background (dial.go, unacked_*.go), so that no
// address delays the others.
package statsdsink
