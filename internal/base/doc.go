// Package base holds what several rooms of the house need and no one of them owns. It imports the
// standard library alone, and everything may import it.
//
//	addrlevel.go     the levels of an address: itself, and the networks that it lies in
//	backoff.go       how long to wait after failures
//	cmpbool.go       the order of booleans
//	countset.go      counters that a package declares once: read, and added up
//	duration.go      durations as files and flags write them
//	floor.go         division that rounds down
//	guarded.go       a value that any goroutine may change
//	hash.go          numbers whose bits are spread
//	hexdigit.go      digits of percent-encoding
//	jsonpath.go      the names of values in JSON
//	openfiles_*.go   how many files the process may have open
//	pace.go          how often counts are flushed
//	peer.go          who has a connection, and whose gives way to a new one: peer_*.go by system
//	secret.go        secrets from files and variables
//	spelling.go      the word that was probably meant
//	unixsocket.go    the path of a Unix socket, made free
//
// The texts of keys as bytes, on which senders and the aggregator agree (package hotparam writes
// them):
//
//	GET /search?page=2&q=phone     a key: route and parameters
//	GET /search?q=pho~6a2f…        keycut.go: one that was too long, with a hash of the whole
//	GET /search?~more              keyreserved.go: all keys of a request beyond the most it may have
//	POST /login?form:~unread       keyreserved.go: all requests whose body could not be read
//	GET /search?page&q             keyreserved.go: the group of a key
//	GET /search?~again&page&q      keyreserved.go: what the total of a group has too much
//	GET /search?*                  keytotal.go: the total of a route
//
// keybytes.go tells the bytes that stand for themselves in a key. These functions do not allocate
// where dst has room, and all are safe for concurrent use.
package base
