// Package base has what several packages need and none of them owns. It imports only the
// standard library, and every package may import it.
//
//	addrlevel.go     the levels of an address: itself, and the networks that contain it
//	backoff.go       the time to wait after failures
//	cmpbool.go       the order of booleans
//	countset.go      counters that a package declares once: reading and adding them up
//	duration.go      durations as written in files and flags
//	floor.go         division that rounds down
//	guarded.go       a value that any goroutine may change
//	hash.go          numbers whose bits are spread
//	hexdigit.go      digits of percent-encoding
//	jsonpath.go      the names of values in JSON, and jsonskip.go the way through its text
//	notify.go        a signal that waits for its receiver
//	openfiles_*.go   the number of files that the process may have open
//	pace.go          the interval of flushes
//	peer.go          the peer of a connection, and which connection gives way: peer_*.go by system
//	secret.go        secrets from files and variables
//	spelling.go      the word that was probably intended
//	ticks.go         waiting, once and at an interval
//	times.go         the later and the earlier of two instants
//	unixsocket.go    listening on a Unix socket whose path may be stale
//
// It also has the texts of keys as bytes, which senders and the aggregator must agree on
// (package keytext writes keys):
//
//	GET /search?page=2&q=phone     a key: route and parameters
//	GET /search?q=pho~6a2f…        keycut.go: a key that was too long, with a hash of the whole
//	GET /search?~more              keyreserved.go: all keys of a request beyond the maximum
//	POST /login?form:~unread       keyreserved.go: all requests whose body could not be read
//	GET /search?page&q             keyreserved.go: the group of a key
//	GET /search?~again&page&q      keyreserved.go: what a group's total counts more than once
//	GET /search?*                  keytotal.go: the total of a route
//
// escape.go escapes and decodes the bytes of a key, and keybytes.go finds those that are
// escaped. The functions that append a
// text to dst do not allocate if it has room. All are safe for concurrent use.
package base
