package testenv

import (
	"context"
	"net"
	"strconv"
)

// RedisSetConfig is how a set of several servers differs from the usual one.
type RedisSetConfig struct {
	// Advertise returns the address that others reach the server by which listens on addr,
	// such as that of a relay. It has to return the same each time. nil: addr itself.
	Advertise func(addr string) string
	// Arguments are added to those of each server with data.
	Arguments []string
}

// announceNode returns the arguments by which the node of a cluster names its address. Among
// each other nodes talk directly.
func (c *RedisSetConfig) announceNode(addr string) []string {
	if c.Advertise == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(c.Advertise(addr))
	_, own, _ := net.SplitHostPort(addr)
	bus, _ := strconv.Atoi(own)
	return []string{"--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-announce-bus-port", strconv.Itoa(bus + busOffset)}
}

// announceReplica returns the arguments by which a replica names its address to its
// primary, of which sentinels learn it.
func (c *RedisSetConfig) announceReplica(addr string) []string {
	if c.Advertise == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(c.Advertise(addr))
	return []string{"--replica-announce-ip", host, "--replica-announce-port", port}
}

// AwaitReplica waits until the server is a replica that has all that its primary has.
func (s *RedisServer) AwaitReplica() {
	s.tb.Helper()
	awaitRedis(s.tb, "a replica is in step", func(ctx context.Context) bool { return inStep(ctx, s) })
}
