// Package keytext reads and writes the texts of keys as bytes: the parts that senders and
// the aggregator agree on, and that no user of package rules needs.
//
//	GET /search?page=2&q=phone     a key: route and parameters (package rules writes them)
//	GET /search?q=pho~6a2f…        cut.go: one that was too long, with a hash of the whole
//	GET /search?~more              reserved.go: all keys of a request beyond the most it may have
//	POST /login?form:~unread       reserved.go: all requests whose body could not be read
//	GET /search?page&q             reserved.go: the group of a key
//	GET /search?~again&page&q      reserved.go: what the total of a group has too much
//	GET /search?*                  total.go: the total of a route
//
// Functions do not allocate where dst has room, and are safe for concurrent use.
package keytext
