// Package e2e holds the end-to-end tests: a real Redis, the hotparam command and the example API,
// each a process of its own, started like a user would start them, with real traffic over HTTP.
// Faults are real, too: servers are killed or stopped, and links are cut. Package chaos has most of
// them.
//
//	fleet_test.go     starts the parts and reads their state
//	requests_test.go  requests at a pace, each with its answer
//	load_test.go      steady traffic, and the judgement of its answers
//	pipeline_test.go  a hot parameter, from the first request to the last
//	layout_test.go    the data in Redis
//	enforce_test.go   how fast a limit is in force everywhere
//	flood_test.go     a flood of distinct values
//	places_test.go    more hot keys than can be published
//	operate_test.go   signals, health, any order of starts, and an aggregator that is replaced
//	crowd_test.go     known traffic, from which the true counts can be computed
//	sights_test.go    observations of the hot set, compared with the truth
//	story_test.go     one fault after the other under the traffic of a crowd
//	loss_test.go      detection and bounds on a network that loses packets: loss_plan_test.go the traffic,
//	                  loss_sender_test.go instances that write down their counts, loss_relay_test.go the
//	                  network, loss_truth_test.go loss_judge_test.go the published bounds against the counts
//	restart_test.go   aggregators that restart, compared with one that does not: restart_plan_test.go the
//	                  rules and the traffic, restart_watch_test.go the observations, restart_terms_test.go
//	                  restart_judge_test.go the truth and the violations, restart_faults_test.go faults
//	                  planted on purpose
//	limits_load_test.go   requests as fast as possible
//	limits_exact_test.go  limits of all instances
//	limits_fleet_test.go  what all instances admit, beside their limit
//	outcomes_test.go  what became of a hot key's requests, over instances and aggregators that restart
//	limits_share_test.go  each instance's part of a limit
//	onhot_test.go onhot_server_test.go  a crowd that is answered from memory; instances that count the
//	                  runs of their handler
//	kafka_test.go     a hot parameter over Kafka, and an unavailable Kafka
//	kafka_fleet_test.go kafka_topic_test.go kafka_brokers_test.go  its parts
//	kafka_faults_test.go faults where there are several brokers and aggregators
//	gateways_test.go  a crowd behind two gateways of each kind, with a guard each
//	gateway_faults_test.go  their guards killed, stopped and slow; Redis and the aggregator unavailable
//	graphite_test.go  a flash crowd through StatsD and Graphite
//	graphite_fleet_test.go graphite_faults_test.go graphite_keys_test.go  its parts, their faulty answers, any keys
//
// TestLossOverTheWire is a small part of make verify-loss, and TestRestartsOverTheWire of make
// verify-restarts. TestKafkaFaults, TestFlashCrowdByGraphite and TestCrowdFromMemory are small parts
// of make verify-stories.
//
// Tests that measure speed run first, one after the other. Tests that mostly wait follow, a few
// at a time. All are skipped with -short. They need a Unix.
package e2e
