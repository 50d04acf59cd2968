// Package e2e holds the tests of the whole: a real Redis, the hotparam command
// and the example API, each a process of its own, started as a user would start
// them, with real traffic over HTTP. Faults are real, too: servers are killed and
// stopped in their tracks, links are cut.
//
//	fleet_test.go     starts the parts and asks them how they are
//	requests_test.go  requests at a pace, each with its answer
//	load_test.go      steady traffic, and the judgement of its answers
//	pipeline_test.go  a hot parameter, from the first request to the last
//	layout_test.go    what Redis then holds
//	enforce_test.go   how fast a limit is in force everywhere
//	faults_test.go    what goes away, and comes back
//	flood_test.go     a flood of distinct values
//	flood_malformed_test.go  a flood of nonsense
//	places_test.go    more hot keys than can be published
//	operate_test.go   signals, health, and counts of others
//	crowd_test.go     known traffic, from which the truth can be reckoned
//	sights_test.go    what was seen of the hot set, held against the truth
//	story_test.go     fault after fault under the eyes of a crowd
//	loss_test.go      what is found and told on a network that loses packets: loss_plan_test.go the traffic,
//	                  loss_sender_test.go instances that write down what they count, loss_relay_test.go the
//	                  network, loss_truth_test.go loss_judge_test.go what is published against that
//	restart_test.go   aggregators that restart, beside one that does not: restart_plan_test.go the rules
//	                  and the traffic, restart_watch_test.go what is seen, restart_terms_test.go
//	                  restart_judge_test.go the truth and what is wrong, restart_faults_test.go faults
//	                  planted on purpose
//	limits_load_test.go limits_worker_test.go  hammers limits; instances whose requests take time
//	limits_exact_test.go limits_away_test.go  limits of all instances, and Redis away from them
//	limits_share_test.go  each instance's part of a limit
//	limits_work_test.go   how many are at work at a time, over all instances
//	limits_reload_test.go limits that change under load
//	kafka_test.go     a hot parameter over Kafka, and Kafka away
//	kafka_fleet_test.go kafka_topic_test.go kafka_brokers_test.go  its parts
//	kafka_faults_test.go what goes away where there are several of all
//	gateways_test.go  a crowd behind two gateways of each kind, with a guard each
//	gateway_faults_test.go  their guards killed, stopped and slow; Redis and the aggregator away
//	doors_test.go     a guard with all doors, and operators' controls at each
//	guard_slow_test.go guard_flood_test.go guard_rate_test.go  slow senders, 10,000 connections, and
//	                  5,000 requests a second at each door
//	graphite_test.go  a flash crowd by way of StatsD and Graphite
//	graphite_fleet_test.go graphite_faults_test.go graphite_keys_test.go  its parts, what they answer, any keys
//
// TestLossOverTheWire is a small part of what make verify-loss runs, TestRestartsOverTheWire of
// what make verify-restarts does, TestKafkaFaults and TestFlashCrowdByGraphite of what make
// verify-stories does.
//
// Tests that measure how fast something is run first, one after the other; those that
// wait most of the time follow, a few at a time. All are left out with -short. They need
// a Unix.
package e2e
