package blame

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A world is a simulated fleet and its back end. Times are seconds. Requests come at random, wait
// for a connection, sleep (a lock, the network), compute on shared processors, and end. Instances
// report each 100 ms, and the judge's holds take effect 200 ms later.
type world struct {
	rand    *rand.Rand
	now     float64
	events  events
	judge   *Judge
	options options

	keys    []*simKey
	weights []float64 // cumulative, of the ordinary keys

	work    float64 // seconds of processor that each running request has had until now
	running jobs
	waiting []*job
	conns   int

	instances []*instance
	permits   map[*simKey]bool
	limit     int64
	inHold    int64

	usage  map[*simKey]Usage
	routes map[string]Usage

	latencies []sample
	outcome
}

type options struct {
	rate   float64 // ordinary requests a second
	cores  float64
	conns  int     // of the pool; 0 means any number
	zipf   float64 // exponent of the keys' popularity
	routes int
	length float64

	slow     func(now float64) float64                     // multiplies all work
	traffic  func(now float64) float64                     // multiplies the rate
	network  func(w *world, instance int) float64          // seconds of sleep with the connection
	client   func(w *world, instance int) float64          // seconds after it
	paused   func(now float64, instance int) (end float64) // of a pause, 0 means none
	shift    float64                                       // when other keys become popular
	culprits []culprit
}

// culprit is a key whose requests cost more from one time to another.
type culprit struct {
	name        string // of an ordinary key, or a new one
	rate        float64
	work, sleep float64
	from, to    float64
	always      bool // its requests go on, at the usual cost
	flood       bool // its requests cost as usual
}

type simKey struct {
	key   rules.Key
	route string
	work  float64 // mean
	guilt *culprit
}

type job struct {
	key         *simKey
	at          *instance
	begun, told float64
	work, sleep float64
	finish      float64 // in world.work
	held        bool
	index       int
}

type instance struct {
	n      int
	flying map[*job]bool
	report map[*simKey]*Usage
	pause  float64
}

type sample struct{ at, took float64 }

// outcome is what happened.
type outcome struct {
	found    map[*simKey]float64 // when each was held first
	released float64             // the last release
	kept     map[*simKey]bool
	tried    map[*simKey]bool
	trials   int
	slowAt   float64 // when the others first were slow
	slowFor  float64 // seconds for which they were
	refused  int     // innocent requests
	flaps    int     // holds of a key beyond the first
}

func newWorld(seed uint64, o options) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 7)), options: o, judge: New(Config{Pool: "db"}), usage: map[*simKey]Usage{}, routes: map[string]Usage{}, permits: map[*simKey]bool{}}
	w.found, w.kept, w.tried = map[*simKey]float64{}, map[*simKey]bool{}, map[*simKey]bool{}
	sum := 0.0
	for i := range 500 {
		route := fmt.Sprintf("/r%d", i%max(1, o.routes))
		k := &simKey{key: rules.Key{Rule: "r", Text: fmt.Sprintf("%s?q=%d", route, i)}, route: route, work: 0.001 * math.Exp(0.3*w.rand.NormFloat64())}
		if i%50 == 17 { // some are always dear
			k.work = 0.02 + 0.03*w.rand.Float64()
		}
		w.keys = append(w.keys, k)
		sum += math.Pow(float64(i+1), -o.zipf)
		w.weights = append(w.weights, sum)
	}
	for i := range o.culprits {
		c := &o.culprits[i]
		k := &simKey{key: rules.Key{Rule: "r", Text: "/r0?q=" + c.name}, route: "/r0", work: 0.001, guilt: c}
		for _, known := range w.keys[:500] {
			if known.key.Text == k.key.Text {
				k = known
				k.guilt = c
			}
		}
		if k.guilt == c && !slices.Contains(w.keys, k) {
			w.keys = append(w.keys, k)
		}
		w.at(c.from+w.rand.ExpFloat64()/c.rate, func() { w.arriveCulprit(k) })
	}
	for n := range 4 {
		in := &instance{n: n, flying: map[*job]bool{}, report: map[*simKey]*Usage{}}
		w.instances = append(w.instances, in)
		w.at(0.1*w.rand.Float64(), func() { w.report(in) })
	}
	w.at(0, w.arrive)
	w.at(0.1, w.tick)
	return w
}

func (w *world) run() {
	for w.now < w.options.length {
		next := w.events[0].when
		if len(w.running) > 0 {
			speed := min(1, w.options.cores/float64(len(w.running)))
			if w.options.slow != nil {
				speed /= w.options.slow(w.now)
			}
			done := w.now + max(0, w.running[0].finish-w.work)/speed
			if done <= next {
				w.work, w.now = w.running[0].finish, done
				w.leave(heap.Pop(&w.running).(*job))
				continue
			}
			w.work += (next - w.now) * speed
		}
		w.now = next
		heap.Pop(&w.events).(event).do()
	}
}

func (w *world) arrive() {
	rate := w.options.rate
	if w.options.traffic != nil {
		rate *= w.options.traffic(w.now)
	}
	w.after(w.rand.ExpFloat64()/rate, w.arrive)
	i, _ := slices.BinarySearch(w.weights, w.rand.Float64()*w.weights[len(w.weights)-1])
	if w.options.shift > 0 && w.now > w.options.shift {
		i = (i*7 + 250) % 500
	}
	w.begin(w.keys[min(i, 499)])
}

func (w *world) arriveCulprit(k *simKey) {
	if w.now < k.guilt.to || k.guilt.always {
		w.after(w.rand.ExpFloat64()/k.guilt.rate, func() { w.arriveCulprit(k) })
		w.begin(k)
	}
}

func (w *world) begin(k *simKey) {
	in := w.instances[w.rand.IntN(len(w.instances))]
	held := w.permits[k]
	if held && w.inHold >= w.limit {
		w.usageOf(in, k).Refused++
		if k.guilt == nil {
			w.refused++
		}
		return
	}
	j := &job{key: k, at: in, begun: w.now, told: w.now, held: held, work: k.work * w.rand.ExpFloat64()}
	if held {
		w.inHold++
	}
	if c := k.guilt; c != nil && w.now >= c.from && w.now < c.to && !c.flood {
		j.work, j.sleep = c.work*(0.8+0.4*w.rand.Float64()), c.sleep
	}
	if w.options.network != nil {
		j.sleep += w.options.network(w, in.n)
	}
	in.flying[j] = true
	w.usageOf(in, k).Begun++
	w.waiting = append(w.waiting, j)
	w.connect()
}

// connect gives free connections to those who wait.
func (w *world) connect() {
	for len(w.waiting) > 0 && (w.options.conns == 0 || w.conns < w.options.conns) {
		j := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.conns++
		if j.sleep > 0 {
			w.after(j.sleep, func() { w.compute(j) })
		} else {
			w.compute(j)
		}
	}
}

func (w *world) compute(j *job) {
	j.finish = w.work + j.work
	heap.Push(&w.running, j)
}

// leave ends the work of a job at the back end.
func (w *world) leave(j *job) {
	w.conns--
	w.connect()
	later := 0.0
	if w.options.client != nil {
		later = w.options.client(w, j.at.n)
	}
	if w.options.paused != nil {
		if end := w.options.paused(w.now, j.at.n); end > w.now {
			later += end - w.now
		}
	}
	if later > 0 {
		w.after(later, func() { w.end(j) })
	} else {
		w.end(j)
	}
}

func (w *world) end(j *job) {
	delete(j.at.flying, j)
	u := w.usageOf(j.at, j.key)
	u.Ended++
	u.Took += duration(w.now - j.begun)
	u.Busy += duration(w.now - j.told)
	if j.held {
		w.inHold--
	}
	if j.key.guilt == nil {
		w.latencies = append(w.latencies, sample{w.now, w.now - j.begun})
	}
}

func (w *world) usageOf(in *instance, k *simKey) *Usage {
	u := in.report[k]
	if u == nil {
		u = &Usage{}
		in.report[k] = u
	}
	return u
}

// report sends the totals, the 64 keys with the most time, the 32 that took longest beyond the
// mean, and those that are held. One in 300 reports is lost.
func (w *world) report(in *instance) {
	w.after(0.1+0.01*w.rand.NormFloat64(), func() { w.report(in) })
	for j := range in.flying {
		w.usageOf(in, j.key).Busy += duration(w.now - j.told)
		j.told = w.now
	}
	list := make([]*simKey, 0, len(in.report))
	var took time.Duration
	var ended int64
	lost := w.rand.IntN(300) == 0
	for k, u := range in.report {
		list = append(list, k)
		took, ended = took+u.Took, ended+u.Ended
		if !lost {
			t := w.routes[k.route]
			t.Add(u)
			w.routes[k.route] = t
		}
	}
	mean := took / time.Duration(max(1, ended))
	picked := map[*simKey]bool{}
	pick := func(n int, by func(u *Usage) time.Duration) {
		slices.SortFunc(list, func(a, b *simKey) int {
			return cmp.Or(cmp.Compare(by(in.report[b]), by(in.report[a])), a.key.Compare(b.key))
		})
		for _, k := range list[:min(n, len(list))] {
			picked[k] = true
		}
	}
	pick(64, func(u *Usage) time.Duration { return u.Busy })
	pick(32, func(u *Usage) time.Duration { return u.Took - time.Duration(u.Ended)*mean })
	for _, k := range list {
		if (picked[k] || w.permits[k]) && !lost {
			u := w.usage[k]
			u.Add(in.report[k])
			w.usage[k] = u
		}
	}
	in.report = map[*simKey]*Usage{}
}

// tick is the aggregator's.
func (w *world) tick() {
	w.after(0.1, w.tick)
	var routes []RouteUsage
	for r, u := range w.routes {
		routes = append(routes, RouteUsage{r, u})
	}
	slices.SortFunc(routes, func(a, b RouteUsage) int { return cmp.Compare(a.Route, b.Route) })
	var keys []KeyUsage
	byKey := map[rules.Key]*simKey{}
	for _, k := range w.keys {
		byKey[k.key] = k
		if u, ok := w.usage[k]; ok {
			keys = append(keys, KeyUsage{k.key, k.route, u})
		}
	}
	clear(w.routes)
	clear(w.usage)
	trying := w.judge.trial.running
	changed := w.judge.Observe(epoch.Add(duration(w.now)), routes, keys)
	if w.judge.present.flags[0] && w.now > start && w.now < stop {
		w.slowFor += 0.1
		if w.slowAt == 0 {
			w.slowAt = w.now
		}
	}
	if w.judge.trial.running && !trying {
		w.trials++
	}
	if len(w.judge.Released()) > 0 {
		w.released = w.now
	}
	if !changed {
		return
	}
	permits, limit := map[*simKey]bool{}, int64(0)
	for _, h := range w.judge.Held() {
		k := byKey[h.Key]
		permits[k], limit = true, h.Hold.Permits
		if !w.permits[k] && w.tried[k] {
			w.flaps++
		}
		if _, ok := w.found[k]; !ok {
			w.found[k] = w.now
		}
		w.tried[k] = true
		if h.Hold.Stage != published.HoldTrial {
			w.kept[k] = true
		}
	}
	w.after(0.2, func() { w.permits, w.limit = permits, limit })
}

var epoch = time.Unix(1_000_000_000, 0)

// p99 returns the percentile of the latencies of innocent requests within a time.
func (w *world) p99(from, to float64) float64 {
	var took []float64
	for _, s := range w.latencies {
		if s.at >= from && s.at < to {
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return math.NaN()
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

type event struct {
	when float64
	n    int
	do   func()
}
type events []event

func (w *world) at(when float64, do func()) { heap.Push(&w.events, event{when, w.rand.Int(), do}) }
func (w *world) after(d float64, do func()) { w.at(w.now+max(0, d), do) }

func (e events) Len() int { return len(e) }
func (e events) Less(a, b int) bool {
	return e[a].when < e[b].when || e[a].when == e[b].when && e[a].n < e[b].n
}
func (e events) Swap(a, b int) { e[a], e[b] = e[b], e[a] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

type jobs []*job

func (j jobs) Len() int           { return len(j) }
func (j jobs) Less(a, b int) bool { return j[a].finish < j[b].finish }
func (j jobs) Swap(a, b int)      { j[a], j[b] = j[b], j[a] }
func (j *jobs) Push(x any)        { *j = append(*j, x.(*job)) }
func (j *jobs) Pop() any {
	last := (*j)[len(*j)-1]
	*j = (*j)[:len(*j)-1]
	return last
}
