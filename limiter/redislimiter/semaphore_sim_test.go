package redislimiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter/semaphore"
)

// A permitsRun is one key of a semaphore in virtual time. The instances are real, and so is Redis.
// The network between them is not, and Redis's clock is that of the run.
type permitsRun struct {
	instances int
	permits   int64
	exact     bool            // each request asks
	workers   func(i int) int // of an instance; each makes one request after the other
	think     func(i int) time.Duration
	starts    func(i int) time.Duration // time when the workers of an instance start
	wait      time.Duration             // 0 means that requests do not wait
	handler   func(rnd *rand.Rand) time.Duration
	lasts     time.Duration
	lease     time.Duration
	oneWay    time.Duration
	loss      float64
	event     func(sim *permitsSim, at time.Duration) // called each ms
	excused   func(at time.Duration) bool             // whether more than permits may be in flight, as documented
	seed      uint64
}

// permitsResult is what a run has shown.
type permitsResult struct {
	served, denied []int64         // by instance
	longest        []time.Duration // longest wait of a served request, by instance
	calls          int64           // scripts
	most           int64           // requests in flight
	inUse          float64         // mean of the permits in use
	stale          int             // requests that got a lease that was lost
	stats          []SemaphoreStats
}

func (r *permitsResult) total() (n int64) {
	for _, served := range r.served {
		n += served
	}
	return n
}

// permitsSim is a run under way.
type permitsSim struct {
	*testing.T
	run     permitsRun
	plain   *redis.Client
	begin   time.Time
	permits atomic.Int64
	calls   atomic.Int64
	all     []*permitsInstance

	mu       sync.Mutex // guards what follows
	inFlight int64
	used     time.Duration // permits × time
	since    time.Time
	result   permitsResult
}

// permitsInstance is an instance and, as a hook of its client, the network before Redis.
type permitsInstance struct {
	sim       *permitsSim
	number    int
	semaphore *Semaphore
	stop      context.CancelFunc
	crashed   atomic.Bool
	cut       atomic.Bool
	mu        sync.Mutex
	rnd       *rand.Rand
}

func (i *permitsInstance) chance(p float64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.rnd.Float64() < p
}

// simulated returns a script whose clock is that of the run, whose messages are kept in a list, and
// whose keys do not expire.
func simulated(source string) string {
	return strings.NewReplacer(
		"redis.call('TIME')", "{0, redis.call('GET', 'sim:clock')}",
		"redis.call('PUBLISH'", "redis.call('RPUSH'",
		"redis.call('PEXPIRE'", "redis.call('EXISTS'",
	).Replace(source)
}

// simulatedScripts has the scripts of a run by the hashes of the real ones.
var simulatedScripts = sync.OnceValue(func() map[any]string {
	all := make(map[any]string)
	for _, s := range []*script{semaphoreAcquire, semaphoreRelease, semaphoreRenew, semaphoreLook, probeSet} {
		all[s.hash] = redis.NewScript(simulated(s.source.(string))).Hash()
	}
	return all
})

func (i *permitsInstance) DialHook(next redis.DialHook) redis.DialHook { return next }

func (i *permitsInstance) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := i.pass(ctx, []redis.Cmder{cmd}, func(ctx context.Context) error { return next(ctx, cmd) })
		return err
	}
}

func (i *permitsInstance) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return i.pass(ctx, cmds, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// pass sends commands through the network. A lost answer is one to commands that were executed.
func (i *permitsInstance) pass(ctx context.Context, cmds []redis.Cmder, execute func(context.Context) error) error {
	for _, cmd := range cmds {
		switch args := cmd.Args(); args[0] {
		case "evalsha":
			i.sim.calls.Add(1)
			args[1] = simulatedScripts()[args[1]]
		case "eval":
			args[1] = simulated(args[1].(string))
		default:
			return execute(ctx) // the client's own
		}
	}
	lost := func() error {
		<-ctx.Done()
		for _, cmd := range cmds {
			cmd.SetErr(ctx.Err())
		}
		return ctx.Err()
	}
	down := func() bool { return i.crashed.Load() || i.cut.Load() || i.chance(i.sim.run.loss) }
	if down() {
		return lost()
	}
	time.Sleep(i.sim.run.oneWay)
	if ctx.Err() != nil {
		return lost()
	}
	i.sim.setClock()
	err := execute(context.WithoutCancel(ctx))
	time.Sleep(i.sim.run.oneWay)
	if down() || ctx.Err() != nil {
		return lost()
	}
	return err
}

func (sim *permitsSim) setClock() {
	must(sim, sim.plain.Set(context.Background(), "sim:clock", time.Now().UnixMicro(), 0).Err())
}

// join starts an instance.
func (sim *permitsSim) join(addr string) *permitsInstance {
	i := &permitsInstance{sim: sim, number: len(sim.all), rnd: rand.New(rand.NewPCG(sim.run.seed, uint64(len(sim.all))))}
	client := storeClient(sim, addr, nil)
	client.AddHook(i)
	s, err := NewSemaphore(client, SemaphoreConfig{Namespace: namespaceOf(sim), Name: fmt.Sprint("api-", i.number), Lease: sim.run.lease})
	must(sim, err)
	i.semaphore = s
	s.hearing.Store(true)
	sim.all = append(sim.all, i)
	return i
}

// use adds n requests in flight. The judge is outside: it knows the requests alone.
func (sim *permitsSim) use(n int64) {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	now := time.Now()
	sim.used += now.Sub(sim.since) * time.Duration(sim.inFlight)
	sim.since = now
	sim.inFlight += n
	sim.result.most = max(sim.result.most, sim.inFlight)
	if at := now.Sub(sim.begin); sim.inFlight > sim.permits.Load() && n > 0 && (sim.run.excused == nil || !sim.run.excused(at)) {
		sim.Errorf("%v: %d requests are in flight, and there are %d permits", at, sim.inFlight, sim.permits.Load())
	}
}

// request makes one request, and reports whether it was served.
func (i *permitsInstance) request(ctx context.Context, rnd *rand.Rand) bool {
	sim := i.sim
	ask := semaphore.Request{Permits: sim.permits.Load(), Within: sim.run.wait, Queue: 1000, Keep: !sim.run.exact}
	began := time.Now()
	lease, _, err := i.semaphore.Acquire(ctx, "k", ask)
	if i.crashed.Load() {
		return false
	}
	if err != nil || lease == noLease {
		sim.mu.Lock()
		defer sim.mu.Unlock()
		sim.result.denied[i.number]++
		return false
	}
	sim.mu.Lock()
	sim.result.served[i.number]++
	sim.result.longest[i.number] = max(sim.result.longest[i.number], time.Since(began))
	if isLost(lease) {
		sim.result.stale++
	}
	sim.mu.Unlock()
	sim.use(1)
	done := time.NewTimer(sim.run.handler(rnd))
	defer done.Stop()
	for lost := lease.Lost(); ; {
		select {
		case <-lost: // it no longer counts
			sim.use(-1)
			<-done.C
			lease.Release()
			return true
		case <-ctx.Done(): // the instance crashed
			sim.use(-1)
			return false
		case <-done.C:
			sim.use(-1)
			lease.Release()
			return true
		}
	}
}

// deliver sends the hints on their way.
func (sim *permitsSim) deliver(ctx context.Context, work *sync.WaitGroup) {
	for _, text := range sim.plain.LPopCount(context.Background(), sim.all[0].semaphore.channel, 1000).Val() {
		for _, i := range sim.all {
			if key, ok := strings.CutPrefix(text, i.semaphore.process+" "); ok && !i.cut.Load() && !i.crashed.Load() && !i.chance(sim.run.loss) {
				work.Go(func() { i.semaphore.hint(ctx, key) })
			}
		}
	}
}

// simulatePermits runs a fleet and returns what was seen.
func simulatePermits(t *testing.T, addr string, run permitsRun) (result permitsResult) {
	t.Helper()
	if run.lease == 0 {
		run.lease = 10 * time.Second
	}
	synctest.Test(t, func(t *testing.T) {
		sim := &permitsSim{T: t, run: run, plain: storeClient(t, addr, nil), begin: time.Now(), since: time.Now()}
		must(t, sim.plain.FlushDB(context.Background()).Err())
		sim.setClock()
		for h := range simulatedScripts() { // so that no call is made twice
			for _, s := range []*script{semaphoreAcquire, semaphoreRelease, semaphoreRenew, semaphoreLook, probeSet} {
				if s.hash == h {
					must(t, sim.plain.ScriptLoad(context.Background(), simulated(s.source.(string))).Err())
				}
			}
		}
		sim.permits.Store(run.permits)
		sim.result.served, sim.result.denied = make([]int64, run.instances), make([]int64, run.instances)
		sim.result.longest = make([]time.Duration, run.instances)
		var work, workers sync.WaitGroup
		ending, end := context.WithCancel(context.Background())
		running, stop := context.WithCancel(context.Background())
		defer work.Wait()
		defer stop()
		for range run.instances {
			i := sim.join(addr)
			ctx, crash := context.WithCancel(context.Background())
			i.stop = func() { i.crashed.Store(true); crash() }
			work.Go(func() { i.semaphore.runLeases(running) })
			for w := range run.workers(i.number) {
				rnd := rand.New(rand.NewPCG(run.seed, uint64(1000*i.number+w)))
				workers.Go(func() {
					if run.starts != nil {
						time.Sleep(run.starts(i.number))
					}
					for ending.Err() == nil && !i.crashed.Load() {
						served := i.request(ctx, rnd)
						pause := time.Duration(0)
						if run.think != nil {
							pause = time.Duration(rnd.ExpFloat64() * float64(run.think(i.number)))
						}
						if !served {
							pause = max(pause, time.Millisecond)
						}
						time.Sleep(pause)
					}
				})
			}
			t.Cleanup(crash)
		}
		for at := time.Duration(0); at < run.lasts; at += time.Millisecond {
			if run.event != nil {
				run.event(sim, at)
			}
			sim.deliver(ending, &work)
			time.Sleep(time.Millisecond)
		}
		sim.use(0)
		calls := sim.calls.Load()
		end()
		workers.Wait()
		result = sim.result
		result.calls = calls
		result.inUse = float64(sim.used) / float64(run.lasts)
		for _, i := range sim.all {
			s := i.semaphore.Stats()
			if s.Held > 0 && !i.crashed.Load() {
				t.Errorf("instance %d holds permits for no request: %+v", i.number, s)
			}
			result.stats = append(result.stats, s)
		}
	})
	return result
}

func steady(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func between(least, most time.Duration) func(*rand.Rand) time.Duration {
	return func(rnd *rand.Rand) time.Duration { return least + time.Duration(rnd.Int64N(int64(most-least))) }
}

func each(n int) func(int) int { return func(int) int { return n } }
