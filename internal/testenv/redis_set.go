package testenv

import (
	"context"
	"net"
	"strconv"
)

// RedisSetConfig holds the differences of a set of servers from the usual one.
type RedisSetConfig struct {
	// Advertise returns the address under which others reach the server that listens on addr,
	// such as that of a relay. It must return the same address each time. A nil Advertise returns
	// addr.
	Advertise func(addr string) string
	// Arguments are added to the arguments of each server with data.
	Arguments []string
}

// announceNode returns the arguments with which a cluster node announces its address. Nodes talk
// to each other directly.
func (c *RedisSetConfig) announceNode(addr string) []string {
	if c.Advertise == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(c.Advertise(addr))
	_, clientPort, _ := net.SplitHostPort(addr)
	bus, _ := strconv.Atoi(clientPort)
	return []string{"--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-announce-bus-port", strconv.Itoa(bus + busOffset)}
}

// announceReplica returns the arguments with which a replica announces its address to its
// primary. Sentinels learn the address from the primary.
func (c *RedisSetConfig) announceReplica(addr string) []string {
	if c.Advertise == nil {
		return nil
	}
	host, port, _ := net.SplitHostPort(c.Advertise(addr))
	return []string{"--replica-announce-ip", host, "--replica-announce-port", port}
}

// AwaitReplica waits until the server is a replica that has all data of its primary.
func (s *RedisServer) AwaitReplica() {
	s.tb.Helper()
	awaitRedis(s.tb, "a replica is in step", func(ctx context.Context) bool { return inStep(ctx, s) })
}

// Advertised returns the address that a server announces to others: advertise(addr), where the
// server listens on addr. With a nil advertise it is addr.
func Advertised(advertise func(addr string) string, addr string) string {
	if advertise == nil {
		return addr
	}
	return advertise(addr)
}
