package chaos

import (
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// nodeKinds are faults of one of several servers and of the link to it.
var nodeKinds = []eventKind{
	{name: "kill-node", weight: 3, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: time.Second, longest: 2 * time.Second, begin: killNode},
	{name: "stop-node", weight: 3, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: 500 * time.Millisecond, longest: 5 * time.Second, begin: stopNode},
	{name: "kill-replica", weight: 1, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: time.Second, longest: 3 * time.Second, begin: killReplica},
	{name: "full-node", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: 2 * time.Second, longest: 7 * time.Second, begin: fullNode},
	{name: "slow-node", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: 2 * time.Second, longest: 7 * time.Second, begin: nodeLink(slow)},
	{name: "silent-node", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: time.Second, longest: 7 * time.Second, begin: nodeLink(silent)},
	{name: "cut-node", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: time.Second, longest: 7 * time.Second, begin: nodeLink(cut)},
	{name: "garbled-node", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "cluster", exclusive: "redis", shortest: time.Second, longest: 3 * time.Second, begin: nodeLink(garbled)},

	{name: "failover", weight: 3, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: time.Second, longest: 2 * time.Second, begin: failover},
	{name: "stop-primary", weight: 3, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: time.Second, longest: 2 * time.Second, begin: stopPrimary},
	{name: "slow-primary", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: nodeLink(slow)},
	{name: "silent-primary", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: time.Second, longest: 5 * time.Second, begin: nodeLink(silent)},
	{name: "cut-primary", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: time.Second, longest: 5 * time.Second, begin: nodeLink(cut)},
	{name: "garbled-primary", weight: 2, scenarios: []string{"recovery", "nodes"}, deployment: "sentinel", exclusive: "redis", shortest: time.Second, longest: 3 * time.Second, begin: nodeLink(garbled)},
}

// master is a server that takes writes, with its keys.
type master struct {
	*testenv.RedisServer
	published bool     // has the published set
	limits    []string // names of its limits in limitKeys
	key       string   // one of its keys
}

func (m *master) String() string {
	text := m.Addr() + ": " + strings.Join(m.limits, ", ")
	if m.published {
		text += ", the published set"
	}
	return text
}

// mastersInUse returns the masters that have keys of the run. The first one has the published
// set.
func (r *run) mastersInUse() (all []*master) {
	names := r.limitNames()
	if r.redis.cluster == nil {
		return []*master{{RedisServer: r.redis.primary(), published: true, limits: names}}
	}
	masterOf := func(key string) *master {
		server := r.redis.cluster.Master(key)
		if server == nil {
			r.Fatal("chaos: no node has the key " + key)
		}
		i := slices.IndexFunc(all, func(m *master) bool { return m.RedisServer == server })
		if i < 0 {
			i, all = len(all), append(all, &master{RedisServer: server, key: key})
		}
		return all[i]
	}
	masterOf(redisName("hot")).published = true
	for _, name := range names {
		m := masterOf(r.limitKeys[name])
		m.limits = append(m.limits, name)
	}
	return all
}

// oneMaster draws the master that a fault hits. Half of the time it is the one with the published
// set.
func (r *run) oneMaster(e *plannedFault) *master {
	all := r.mastersInUse()
	if rng := e.rng(); len(all) > 1 && rng.IntN(2) == 0 {
		return all[1+rng.IntN(len(all)-1)]
	}
	return all[0]
}

// outageOf returns the effect of an outage of some masters, which concerns only their keys.
func (r *run) outageOf(masters ...*master) effect {
	e := effect{excuses: mayDecideLocally, unaffected: r.limitNames()}
	for _, m := range masters {
		if m.published {
			e.excuses |= mayMissHotKeys | mayMissChanges
		}
		e.unaffected = without(e.unaffected, m.limits...)
		r.logf("         %s", m)
	}
	return e
}

// nodeLink sets the mode of the links to one master, or to all. The other masters must not notice.
func nodeLink(m mode) func(r *run, e *plannedFault) func() {
	return func(r *run, e *plannedFault) func() {
		masters := []*master{r.oneMaster(e)}
		if e.seed%4 == 0 {
			masters = r.mastersInUse()
		}
		excused := r.outageOf(masters...)
		if m == garbled {
			// A command goes through, but its answer may be that of another one. Some answers say
			// which node has which slots, so those of all nodes may be wrong.
			excused = lossEffect
			excused.excuses |= mayMixGrants
		}
		var relays []*tcpRelay
		for _, m := range masters {
			relays = append(relays, r.redis.relays[m.Addr()])
		}
		return r.during(excused, func() { setAll(relays, m) }, func() { setAll(relays, through) })
	}
}

// fullNode makes one master refuse writes.
func fullNode(r *run, e *plannedFault) func() {
	m := r.oneMaster(e)
	limit := func(memory string) {
		err := testenv.WithRedis(m.Addr(), nil, func(c *redis.Client) error {
			return c.ConfigSet(r.Context(), "maxmemory", memory).Err()
		})
		if err != nil {
			r.Fatal(err)
		}
	}
	return r.during(r.outageOf(m), func() { limit("1") }, func() { limit("0") })
}

// takeoverOf returns the effect of an outage of a master until its replica has taken over. The
// replica may lack the last writes. If the cluster requires all slots to be served, no other
// master serves in between.
func (r *run) takeoverOf(m *master) effect {
	e := r.outageOf(m)
	e.excuses |= mayLoseGrants | mayLoseWrites
	if r.redis.whole {
		e.unaffected = nil
		e.excuses |= mayMissHotKeys | mayMissChanges
	}
	return e
}

// killNode kills a master, which makes its replica take over.
func killNode(r *run, e *plannedFault) func() {
	m := r.oneMaster(e)
	end := r.judge.beginFault(r.takeoverOf(m))
	m.Kill()
	return func() {
		r.redis.cluster.AwaitFailover(m.key, m.RedisServer)
		end()
		m.Restart()
	}
}

// stopNode stops a master, either for less than the node timeout or until after its replica has
// taken over. In the second case it is still silent when everything must work again, and once it
// resumes it does not know at first that it is no longer a master.
func stopNode(r *run, e *plannedFault) func() {
	m := r.oneMaster(e)
	if e.duration < testenv.ClusterNodeTimeout*3/4 {
		return r.during(r.outageOf(m), m.Pause, m.Resume)
	}
	end := r.judge.beginFault(r.takeoverOf(m))
	m.Pause()
	return func() {
		r.redis.cluster.AwaitFailover(m.key, m.RedisServer)
		end()
		r.sleep(calmLeast)
		m.Resume()
		m.AwaitReplica()
	}
}

// killReplica kills a replica, which excuses nothing.
func killReplica(r *run, e *plannedFault) func() {
	masters := r.redis.masters(r.Context())
	replicas := slices.DeleteFunc(r.redis.cluster.Nodes(), func(s *testenv.RedisServer) bool { return slices.Contains(masters, s.Addr()) })
	if len(replicas) == 0 {
		r.Fatal("chaos: the cluster has no replica")
	}
	replica := replicas[e.rng().IntN(len(replicas))]
	replica.Kill()
	return func() {
		replica.Restart()
		replica.AwaitReplica()
	}
}

// failoverEffect is the effect of an outage after which Redis has lost its last writes.
var failoverEffect = effect{excuses: lossEffect.excuses | mayLoseWrites}

// failover kills the primary. Sentinels promote the replica, which may lack the last writes.
func failover(r *run, _ *plannedFault) func() {
	end := r.judge.beginFault(failoverEffect)
	former := r.redis.sentinel.Primary()
	r.redis.sentinel.KillPrimary()
	return func() {
		r.redis.sentinel.AwaitFailover(former)
		end()
		r.redis.sentinel.RestartOld()
	}
}

// stopPrimary stops the primary until the replica has taken over and some seconds more. Half of
// the time it also stops a sentinel, as if both were on one host. When the primary resumes, there
// are two primaries for up to ten seconds, until the sentinels demote it. No client may use it in
// that time.
func stopPrimary(r *run, e *plannedFault) func() {
	end := r.judge.beginFault(failoverEffect)
	former := r.redis.primary()
	advertised := r.redis.sentinel.Primary()
	stopped := []*testenv.RedisServer{former}
	if sentinels := r.redis.sentinel.Sentinels(); e.seed%2 == 0 {
		stopped = append(stopped, sentinels[e.rng().IntN(len(sentinels))])
		r.logf("         with a sentinel")
	}
	for _, s := range stopped {
		s.Pause()
	}
	return func() {
		r.redis.sentinel.AwaitFailover(advertised)
		end()
		r.sleep(calmLeast)
		for _, s := range stopped {
			s.Resume()
		}
		former.AwaitReplica()
	}
}
