package redislimiter_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// A fleetRun is one key of a fleet in virtual time. The instances are real, and so is Redis; the
// network between them is not.
type fleetRun struct {
	instances int
	rate      int64   // permits in a second
	burst     float64 // of a second's permits
	load      float64 // requests per permit
	low       float64 // further requests per permit, which have low priority
	skew      func(instance int, at time.Duration) float64
	lasts     time.Duration
	oneWay    time.Duration
	jitter    float64 // of oneWay, more or less, for callers of Redis itself
	loss      float64
	away      func(instance int, at time.Duration) bool
	event     func(sim *fleetSim, at time.Duration) // called each ms
	outage    rules.OutagePolicy
	wait      time.Duration // for which a request waits for its turn; 0 means only for a settlement
	exact     int           // each so many-th instance asks Redis for each request; 0 means none
	forgets   bool          // those do not remember denials
	seed      uint64
}

// fleetResult is what a run has shown.
type fleetResult struct {
	admitted, ideal, asked int64
	low                    int64         // admitted requests of low priority
	worst                  float64       // lowest level of the shadow bucket, in permits
	fairness               float64       // served part of the worst instance, by the mean
	calls                  float64       // asks per second
	longest                time.Duration // wait of a request that asked Redis
	local                  int64         // requests that an instance decided without Redis
}

func (r *fleetResult) use() float64 { return float64(r.admitted) / float64(max(r.ideal, 1)) }

// shadow is a bucket that all admissions are charged to. It is the judge of the bound: burst plus
// rate times the length of any window is never exceeded if and only if its level stays above zero.
type shadow struct {
	mu          sync.Mutex
	rate, burst float64
	level, low  float64
	last        time.Time
}

func newShadow(rate, burst float64) *shadow {
	return &shadow{rate: rate, burst: burst, level: burst, low: burst, last: time.Now()}
}

func (s *shadow) take(always bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.burst, s.level+now.Sub(s.last).Seconds()*s.rate)
	s.last = now
	if !always && s.level < 1 {
		return false
	}
	s.level--
	s.low = min(s.low, s.level)
	return true
}

// fleetSim is a run under way.
type fleetSim struct {
	run    fleetRun
	quota  *rules.Quota
	space  string
	client *redis.Client
	all    []*fleetInstance
	judge  *shadow
	ideal  *shadow
	rnd    *rand.Rand
	begin  time.Time
	result fleetResult
	calls  atomic.Int64
	served atomic.Int64
	low    atomic.Int64
	work   sync.WaitGroup
	wait   atomic.Int64 // the longest, of a request to Redis
}

func (sim *fleetSim) waited(d time.Duration) {
	for old := sim.wait.Load(); old < int64(d) && !sim.wait.CompareAndSwap(old, int64(d)); old = sim.wait.Load() {
	}
}

// fleetInstance is an instance of the fleet. As a Lender and as a Backend it is the network before
// Redis.
type fleetInstance struct {
	sim             *fleetSim
	number          int
	store           *redislimiter.Store // its own, since Redis knows the charges of each Store
	stock, low      *fleet.Stock        // low is for requests of low priority
	exact           *limiter.Failover   // nil if it holds permits
	stop            context.CancelFunc
	crashed         atomic.Bool // nothing that it sends arrives
	asked, admitted atomic.Int64
	mu              sync.Mutex
	rnd             *rand.Rand
}

var errLost = errors.New("lost")

func (i *fleetInstance) lost() bool {
	r := &i.sim.run
	if i.crashed.Load() || r.away != nil && r.away(i.number, time.Since(i.sim.begin)) {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return r.loss > 0 && i.rnd.Float64() < r.loss
}

// travel takes as long as a message in one way.
func (i *fleetInstance) travel() {
	r := &i.sim.run
	i.mu.Lock()
	d := float64(r.oneWay) * (1 + r.jitter*(2*i.rnd.Float64()-1))
	i.mu.Unlock()
	time.Sleep(time.Duration(d))
}

// Settle implements fleet.Lender.
func (i *fleetInstance) Settle(ctx context.Context, asks []fleet.Ask, answers []fleet.Answer) {
	i.sim.calls.Add(int64(len(asks)))
	fail := func() {
		<-ctx.Done()
		for k := range answers {
			answers[k] = fleet.Answer{Err: errLost}
		}
	}
	if i.lost() {
		fail()
		return
	}
	late := make([]fleet.Answer, len(answers))
	done := make(chan struct{})
	i.sim.work.Go(func() { // the ask is executed even if the caller has given up
		defer close(done)
		time.Sleep(i.sim.run.oneWay)
		i.store.Settle(context.WithoutCancel(ctx), asks, late)
		time.Sleep(i.sim.run.oneWay)
	})
	select {
	case <-done:
		if i.lost() {
			fail()
			return
		}
		copy(answers, late)
	case <-ctx.Done():
		fail()
	}
}

// Patience implements fleet.Lender: the default of a Store, whose own time-out is that of Redis here.
func (i *fleetInstance) Patience() time.Duration { return 50 * time.Millisecond }

// newStore returns the Store of an instance.
func (sim *fleetSim) newStore(tb testing.TB) *redislimiter.Store {
	s, err := redislimiter.New(sim.client, redislimiter.Config{
		Namespace: sim.space, Timeout: calm, Clock: func() time.Duration { return time.Duration(time.Now().UnixNano()) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// join starts an instance.
func (sim *fleetSim) join(tb testing.TB) *fleetInstance {
	i := &fleetInstance{sim: sim, number: len(sim.all), store: sim.newStore(tb), rnd: rand.New(rand.NewPCG(sim.run.seed, uint64(len(sim.all))))}
	f, err := fleet.New(fleet.Config{Lender: i, Instances: func() int { return sim.run.instances }})
	if err != nil {
		tb.Fatal(err)
	}
	if exact := sim.run.exact; exact > 0 && i.number%exact == 0 {
		i.exact = i.failover(tb)
	}
	stocks := f.Stocks(fleet.StockConfig{Name: "users", Key: "ann", Quota: sim.quota, Outage: sim.run.outage}, 2)
	i.stock, i.low = stocks[0], stocks[1]
	ctx, cancel := context.WithCancel(context.Background())
	i.stop = cancel
	sim.work.Go(func() { _ = f.Run(ctx) })
	if i.exact != nil {
		sim.work.Go(func() { _ = i.exact.Run(ctx) })
	}
	sim.all = append(sim.all, i)
	return i
}

// failover returns the backend of an instance that asks Redis for each request, as a guard makes it.
func (i *fleetInstance) failover(tb testing.TB) *limiter.Failover {
	var primary limiter.Backend = i
	if !i.sim.run.forgets {
		cached, err := limiter.NewCached(i, limiter.CachedConfig{})
		if err != nil {
			tb.Fatal(err)
		}
		primary = cached
	}
	f, err := limiter.NewFailover(primary, limiter.FailoverConfig{
		Outage: i.sim.run.outage, Instances: func() int { return i.sim.run.instances },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// request is one request at an instance.
func (i *fleetInstance) request() {
	i.asked.Add(1)
	i.sim.result.asked++
	if i.sim.ideal.take(false) {
		i.sim.result.ideal++
	}
	if i.exact != nil {
		i.sim.work.Go(i.askRedis)
		return
	}
	if i.stock.Take(1) {
		i.admit()
		return
	}
	if wait := i.sim.run.wait; wait > 0 {
		if w, _ := i.stock.Queue(1, wait); w != nil {
			i.sim.work.Go(func() {
				<-w.Done()
				if denial, _ := w.Denied(); denial == nil {
					i.admit()
				}
			})
		}
		return
	}
	if _, shut := i.stock.Shut(1); shut {
		return
	}
	i.sim.work.Go(func() {
		if i.stock.Borrow(context.Background(), 1).Allowed {
			i.admit()
		}
	})
}

// requestLow is one request of low priority.
func (i *fleetInstance) requestLow() {
	admit := func() {
		i.sim.judge.take(true)
		i.sim.low.Add(1)
	}
	if i.low.Take(1) {
		admit()
	} else if _, shut := i.low.Shut(1); !shut {
		i.sim.work.Go(func() {
			if i.low.Borrow(context.Background(), 1).Allowed {
				admit()
			}
		})
	}
}

// askRedis makes a request that takes its permit from the bucket itself.
func (i *fleetInstance) askRedis() {
	began := time.Now()
	op := limiter.Op{Name: "users", Key: "ann", Quota: i.sim.quota, Request: limiter.Request{N: 1}}
	if got, err := i.exact.Do(context.Background(), op); err == nil && got.Allowed {
		i.admit()
	}
	i.sim.waited(time.Since(began))
}

// Do implements limiter.Backend.
func (i *fleetInstance) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	results := make([]limiter.Result, 1)
	err := i.DoAll(ctx, []limiter.Op{op}, results)
	return results[0], limiter.ErrorOf(err, 0)
}

// DoAll implements limiter.Batcher. A script that begins after the deadline takes nothing.
func (i *fleetInstance) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	i.sim.calls.Add(1)
	late := make([]limiter.Result, len(ops))
	err, arrived := i.pass(ctx, func() error { return i.store.DoAll(ctx, ops, late) })
	if arrived { // otherwise late may still be written
		copy(results, late)
	}
	return err
}

// Node implements limiter.Clustered.
func (i *fleetInstance) Node(ctx context.Context, op limiter.Op) string {
	return i.store.Node(ctx, op)
}

// Probe implements limiter.Clustered.
func (i *fleetInstance) Probe(ctx context.Context, op limiter.Op) error {
	err, _ := i.pass(ctx, func() error { return i.store.Probe(ctx, op) })
	return err
}

// pass sends a call through the network, and returns its error, or that of ctx if no answer arrives.
func (i *fleetInstance) pass(ctx context.Context, call func() error) (err error, arrived bool) {
	if i.lost() {
		<-ctx.Done()
		return ctx.Err(), false
	}
	done := make(chan error, 1)
	i.sim.work.Go(func() { // it is executed even if the caller has given up
		i.travel()
		if ctx.Err() != nil {
			return
		}
		err := call()
		if i.travel(); !i.lost() {
			done <- err
		}
	})
	select {
	case err := <-done:
		return err, true
	case <-ctx.Done():
		return ctx.Err(), false
	}
}

func (i *fleetInstance) admit() {
	i.sim.judge.take(true)
	i.admitted.Add(1)
	i.sim.served.Add(1)
}

// poisson returns a random number with the given mean.
func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	n, p, end := 0, rnd.Float64(), math.Exp(-mean)
	for p > end {
		p *= rnd.Float64()
		n++
	}
	return n
}

// simulate runs a fleet and returns what was seen.
func simulate(t *testing.T, addr string, run fleetRun) (result fleetResult) {
	t.Helper()
	if run.skew == nil {
		run.skew = even
	}
	if run.lasts == 0 {
		run.lasts = 12 * time.Second
	}
	space := namespace()
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{
			Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 256,
			DialTimeout: calm, ReadTimeout: calm, WriteTimeout: calm, PoolTimeout: calm,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer client.Close()
		burst := int64(float64(run.rate) * run.burst)
		sim := &fleetSim{
			run: run, space: space, client: client, quota: &rules.Quota{Rate: rules.Rate{N: run.rate, Per: time.Second}, Burst: burst},
			judge: newShadow(float64(run.rate), float64(burst)), ideal: newShadow(float64(run.rate), float64(burst)),
			rnd: rand.New(rand.NewPCG(run.seed, 0)), begin: time.Now(),
		}
		for range run.instances {
			sim.join(t)
		}
		for at := time.Duration(0); at < run.lasts; at += time.Millisecond {
			if run.event != nil {
				run.event(sim, at)
			}
			var total float64
			weights := make([]float64, len(sim.all))
			for k := range sim.all {
				weights[k] = run.skew(k, at)
				total += weights[k]
			}
			for _, k := range sim.rnd.Perm(len(sim.all)) {
				i := sim.all[k]
				if i.stop == nil {
					continue
				}
				demand := float64(run.rate) * run.load * math.Abs(weights[k]) / float64(run.instances)
				for range poisson(sim.rnd, demand/1000) {
					i.request()
				}
				for range poisson(sim.rnd, float64(run.rate)*run.low/float64(run.instances)/1000) {
					i.requestLow()
				}
			}
			time.Sleep(time.Millisecond)
		}
		for _, i := range sim.all {
			if i.stop != nil {
				i.stop()
			}
		}
		sim.work.Wait()
		result = sim.result
		result.low = sim.low.Load()
		result.admitted, result.worst = sim.served.Load(), sim.judge.low
		result.longest = time.Duration(sim.wait.Load())
		for _, i := range sim.all {
			if i.exact != nil {
				result.local += int64(i.exact.Stats().Local)
			}
		}
		result.calls = float64(sim.calls.Load()) / run.lasts.Seconds()
		var served []float64
		var sum float64
		for _, i := range sim.all {
			if asked := i.asked.Load(); asked > 100 {
				part := float64(i.admitted.Load()) / float64(asked)
				served, sum = append(served, part), sum+part
			}
		}
		least := math.Inf(1)
		for _, part := range served {
			least = min(least, part)
		}
		result.fairness = least / (sum / float64(len(served)))
	})
	return result
}

// Skews are the weight of each instance's demand; the mean of all weights is 1.
func even(int, time.Duration) float64 { return 1 }

func zipf(n int, exponent float64) func(int, time.Duration) float64 {
	var sum float64
	for k := range n {
		sum += math.Pow(float64(k+1), -exponent)
	}
	return func(i int, _ time.Duration) float64 {
		return math.Pow(float64(i+1), -exponent) / sum * float64(n)
	}
}

// moving is Zipf's distribution whose order changes every two seconds.
func moving(n int, exponent float64) func(int, time.Duration) float64 {
	still := zipf(n, exponent)
	return func(i int, at time.Duration) float64 {
		return still((i+int(at/(2*time.Second))*(n/3+1))%n, at)
	}
}

func onOne(n int) func(int, time.Duration) float64 {
	return func(i int, _ time.Duration) float64 {
		if i == 0 {
			return float64(n)
		}
		return 0
	}
}

func onOff(_ int, at time.Duration) float64 {
	if at/(500*time.Millisecond)%2 == 0 {
		return 1
	}
	return 0
}
