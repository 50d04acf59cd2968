// Package e2e holds the tests of the whole: a real Redis, the hotparam command
// and the example API, each a process of its own, started as a user would start
// them, with real traffic over HTTP. Faults are real, too: servers are killed and
// stopped in their tracks, links are cut.
//
//	fleet_test.go     starts the parts and asks them how they are
//	load_test.go      steady traffic that records every answer, and judges it
//	link_test.go      links over TCP and UDP that a test can cut
//	pipeline_test.go  a hot parameter, from the first request to the last
//	layout_test.go    what Redis then holds
//	enforce_test.go   how fast a limit is in force everywhere
//	faults_test.go    what goes away, and comes back
//	flood_test.go     a flood of distinct values
//	operate_test.go   signals, health, and counts of others
//
// The tests run one after the other, as some measure time, and are left out with
// -short. They need a Unix.
package e2e
