// Package cachetests runs the tests of cache-tests.fyi, which the authors of HTTP caches share,
// against [github.com/hotparam/hotparam/internal/onhot]. testdata has their definitions. The
// package interprets them with a client, an origin behind the cache, and checks of their
// expectations. Time is that of a bubble of testing/synctest, so pauses take none. The package has
// only tests.
//
// Each test runs under three policies: one that shares as few answers as it can, one that shares
// as many, and one whose answers become stale. What RFC 9111 requires has to hold under all, and
// what the suite calls optimal under the second. TestSuite fails for a test of these that does not
// pass, unless the table of exceptions names it with the reason, and for one in the table that
// passes. The other tests gather how caches behave. Their results under the second policy are in
// testdata/checks.txt. After a change:
//
//	go test ./checks/cachetests -update
package cachetests
