// Package kafkaclient has what all clients of a Kafka cluster share: how they connect, and why they
// cannot.
//
// The files: client.go dial.go the options of a client · topic.go the metadata of a topic ·
// check.go checks of a cluster · explain.go errors
package kafkaclient
