package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisClusterSet is a cluster of three masters, each with a replica that takes over two to three
// seconds after its master died. Its methods must be called from the test's own goroutine.
type RedisClusterSet struct {
	tb    testing.TB
	c     RedisSetConfig
	nodes []*RedisServer // three masters, then their replicas
}

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// ClusterNodeTimeout is the time of silence after which the nodes of a cluster consider a node
// dead.
const ClusterNodeTimeout = 2 * time.Second

// RedisCluster starts a cluster and returns when it is completely up.
func RedisCluster(tb testing.TB) *RedisClusterSet {
	tb.Helper()
	return RedisClusterWith(tb, RedisSetConfig{})
}

// RedisClusterWith is like RedisCluster, but with other settings.
func RedisClusterWith(tb testing.TB, c RedisSetConfig) *RedisClusterSet {
	tb.Helper()
	s := &RedisClusterSet{tb: tb, c: c}
	for range 2 * clusterMasters {
		s.nodes = append(s.nodes, startRedis(tb, redisSetup{bus: true, announce: s.c.announceNode, arguments: append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", strconv.FormatInt(ClusterNodeTimeout.Milliseconds(), 10),
			"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
		}, c.Arguments...)}))
	}
	for i, node := range s.nodes {
		if i < clusterMasters {
			s.mustDo(node, "CLUSTER", "ADDSLOTSRANGE", i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1)
		}
		s.mustDo(node, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	host, port, _ := net.SplitHostPort(s.nodes[0].Addr())
	for _, node := range s.nodes[1:] {
		s.mustDo(node, "CLUSTER", "MEET", host, port)
	}
	s.awaitAll("all nodes know each other", func(info string) bool {
		return strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", len(s.nodes)))
	})
	for i, node := range s.nodes[clusterMasters:] {
		master := s.mustDo(s.nodes[i], "CLUSTER", "MYID")
		awaitRedis(tb, "a replica knows its master", func(ctx context.Context) bool {
			return node.do(ctx, "CLUSTER", "REPLICATE", master).Err() == nil
		})
	}
	for _, node := range s.nodes[clusterMasters:] {
		awaitRedis(tb, "a replica is in step", func(ctx context.Context) bool { return inStep(ctx, node) })
	}
	for i, node := range s.nodes[clusterMasters:] {
		awaitRedis(tb, "a replica is sent what is written", func(ctx context.Context) bool {
			return isSent(ctx, s.nodes[i]) || isSent(ctx, node) // they may have swapped roles
		})
	}
	s.awaitAll("all slots are served", func(info string) bool {
		return strings.Contains(info, "cluster_state:ok\r\n") && strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", clusterSlots))
	})
	return s
}

// Nodes returns the servers, regardless of their present roles.
func (s *RedisClusterSet) Nodes() []*RedisServer { return slices.Clone(s.nodes) }

// Addrs returns the host:port on which each node listens.
func (s *RedisClusterSet) Addrs() []string {
	var addrs []string
	for _, node := range s.nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// URL returns the cluster's URL in the form of redis.ParseClusterURL, with the addresses that the
// nodes advertise.
func (s *RedisClusterSet) URL() string {
	addrs := s.Addrs()
	for i, addr := range addrs {
		addrs[i] = Advertised(s.c.Advertise, addr)
	}
	return "redis://" + addrs[0] + "?" + url.Values{"addr": addrs[1:]}.Encode()
}

// Master returns the node that now reads and writes the key, or nil while none does.
func (s *RedisClusterSet) Master(key string) *RedisServer {
	s.tb.Helper()
	return s.masterBut(key, nil)
}

// masterBut is like Master, but does not ask the node former, which may not answer.
func (s *RedisClusterSet) masterBut(key string, former *RedisServer) *RedisServer {
	ctx, cancel := context.WithTimeout(s.tb.Context(), Patience)
	defer cancel()
	for _, node := range s.nodes {
		if node == former {
			continue
		}
		if node.do(ctx, "EXISTS", key).Err() == nil { // other nodes redirect the client
			return node
		}
	}
	return nil
}

// AwaitFailover waits until a node other than former, which does not answer, is the master of the
// key, and returns that node.
func (s *RedisClusterSet) AwaitFailover(key string, former *RedisServer) *RedisServer {
	s.tb.Helper()
	var master *RedisServer
	awaitRedis(s.tb, "another node has the key "+key, func(context.Context) bool {
		master = s.masterBut(key, former)
		return master != nil
	})
	return master
}

func (s *RedisClusterSet) mustDo(node *RedisServer, args ...any) string {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(s.tb.Context(), Patience)
	defer cancel()
	answer, err := node.do(ctx, args...).Result()
	if err != nil {
		s.tb.Fatalf("testenv: %v at %s: %v", args, node.Addr(), err)
	}
	return fmt.Sprint(answer)
}

func (s *RedisClusterSet) awaitAll(what string, done func(info string) bool) {
	s.tb.Helper()
	for _, node := range s.nodes {
		awaitRedis(s.tb, what, func(ctx context.Context) bool {
			info, err := node.do(ctx, "CLUSTER", "INFO").Text()
			return err == nil && done(info)
		})
	}
}
