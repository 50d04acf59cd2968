// Package statsdsink is the collector's sink that writes StatsD lines, over UDP, TCP
// or Unix sockets, to one aggregator or several, or to any other StatsD.
//
//	collector ─► Sink.Send ─► packer ─► socket ══► aggregator
//	               Spread      meta line   dialer
//
// Send writes each count as a line (sink.go; config.go has the settings) and gives it
// to the packer of the address that [Spread] and the key select (spread.go,
// rendezvous.go). A packer joins lines to packets, each with a meta line at its head
// that states whose it is and what came before it, and signs them (packer.go). A socket
// sends a packet within a deadline or reports that it failed (socket.go); connections
// are made in the background (dial.go, unacked_*.go), so no address holds up others.
package statsdsink
