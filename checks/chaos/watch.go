package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Bounds of I4. The process must be below those of descriptors and goroutines again soon after a
// fault; see [oracle.Level].
const (
	maxLines       = 100 // lines of a log within ten seconds
	maxDescriptors = 200
	maxGoroutines  = 400
	healthBound    = time.Second // time of an answer at /-/healthy
)

// watched is a process whose figures are sampled.
type watched struct {
	*child
	life        int64 // number of its starts when lines began
	lines       oracle.Cap
	descriptors *oracle.Level
	goroutines  *oracle.Level
	notReady    *oracle.Level
	aggregator  bool
	sink        sinkWatch
}

func (j *judge) newWatched(p *child, aggregator bool) *watched {
	level := func(invariant, what string, limit float64) *oracle.Level {
		l := &oracle.Level{Invariant: invariant, Subject: what + " of " + p.name, Most: limit, Deadline: recovery + time.Second}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.levels = append(j.levels, l)
		return l
	}
	return &watched{
		child: p, aggregator: aggregator,
		descriptors: level(oracle.I4, "descriptors", maxDescriptors), goroutines: level(oracle.I4, "goroutines", maxGoroutines),
		notReady: level(oracle.I2, "503 at /-/ready", 0),
	}
}

// sampleProcess samples a process until the context ends. It also checks the health of an aggregator,
// each time over a new connection.
func (f *processFleet) sampleProcess(ctx context.Context, j *judge, w *watched) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	testenv.Every(ctx, 500*time.Millisecond, func(n int) {
		if w.exited() {
			j.forgetTroubles(w.name)
			return
		}
		if life := w.lives.Load(); life != w.life {
			w.life = life
			w.lines = oracle.Cap{Subject: "log lines of " + w.name, Most: maxLines, Window: 10 * time.Second}
		}
		now := f.now()
		j.reportFound(w.lines.Sample(now, float64(w.child.lines())))
		descriptors, _ := w.current().Descriptors()
		j.sampleLevel(w.descriptors, float64(descriptors))
		if w.aggregator {
			f.checkHealth(ctx, j, client, w)
		} else if f.kafka != nil {
			f.checkSink(ctx, j, client, w)
		}
		if n%4 == 0 {
			if g, err := w.countGoroutines(ctx, client); err == nil {
				j.sampleLevel(w.goroutines, g)
			}
		}
	})
}

func (j *judge) sampleLevel(l *oracle.Level, value float64) {
	j.mu.Lock()
	v := l.Sample(j.now(), value, &j.stalls)
	j.mu.Unlock()
	j.reportFound(v)
}

func (f *processFleet) checkHealth(ctx context.Context, j *judge, client *http.Client, w *watched) {
	sent := f.now()
	status, err := ask(ctx, client, http.MethodGet, "http://"+w.addr+"/-/healthy")
	now := f.now()
	excused := j.excusesSilence(oracle.Span{From: sent, To: now}) || w.exited()
	if (err != nil || status != http.StatusOK || now > j.stalls.Extended(sent, healthBound, now)) && !excused && ctx.Err() == nil {
		j.report(oracle.Violation{At: now, Invariant: oracle.I4, Subject: "/-/healthy of " + w.name, Text: fmt.Sprintf(
			"status %d, error %v, after %v, at most %v", status, err, (now - sent).Round(time.Millisecond), healthBound)})
	}
	res, text, err := fetch(ctx, client, http.MethodGet, "http://"+w.addr+"/-/ready")
	j.sampleSource(w.name, text)
	if err == nil {
		v := 0.0
		if res.StatusCode != http.StatusOK {
			v = 1
		}
		j.sampleLevel(w.notReady, v)
	}
}

// countGoroutines returns the number of goroutines, from an instance's state or an aggregator's
// metrics.
func (w *watched) countGoroutines(ctx context.Context, client *http.Client) (float64, error) {
	if w.aggregator {
		return w.metric(ctx, client, "go_goroutines")
	}
	s, err := w.state(ctx, client, false)
	return float64(s.Goroutines), err
}

// instanceState is an instance's report about itself.
type instanceState struct {
	Goroutines int
	Heap       int64
	Watcher    struct{ Resyncs, Gaps, Polls uint64 }
	Sink       struct { // set with Kafka
		Waiting   int64
		Connected bool
		Failed    struct{ BufferFull, Delivery, NotConnected int64 }
	}
}

func (p *child) state(ctx context.Context, client *http.Client, collect bool) (s instanceState, err error) {
	url := "http://" + p.addr + "/chaos/state"
	if collect {
		url += "?gc=1"
	}
	_, text, err := fetch(ctx, client, http.MethodGet, url)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(text), &s)
}

// metric returns one of an aggregator's metrics.
func (p *child) metric(ctx context.Context, client *http.Client, name string) (float64, error) {
	_, text, err := fetch(ctx, client, http.MethodGet, "http://"+p.addr+"/metrics")
	if err != nil {
		return 0, err
	}
	return testenv.Metric(text, name)
}

// The most commands that Redis may refuse within five seconds. In an outage all clients are
// refused, and a client that retries without a pause makes thousands of tries. The bounds leave room
// for a key whose value has a wrong type (poison-limit): Redis may refuse each request for it.
const (
	maxRefusedWrites   = 800
	maxRefusedCommands = 1000 // refused for any other reason
)

// watchRedis samples the number of commands that Redis refuses, until the context ends.
func (f *processFleet) watchRedis(ctx context.Context, j *judge) {
	writes := oracle.Cap{Subject: "writes that Redis refused", Most: maxRefusedWrites, Window: 5 * time.Second}
	others := oracle.Cap{Subject: "commands that Redis refused", Most: maxRefusedCommands, Window: 5 * time.Second}
	testenv.Every(ctx, 500*time.Millisecond, func(int) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = testenv.WithRedis(f.redis.single.Addr(), nil, func(c *redis.Client) error { // sampled again soon
			info, err := c.InfoMap(ctx, "stats", "errorstats").Result()
			if err != nil {
				return err
			}
			total, err := strconv.ParseFloat(info["Stats"]["total_error_replies"], 64)
			if err != nil {
				return err
			}
			var refusedWrites float64
			for _, code := range []string{"LOADING", "MISCONF", "NOREPLICAS", "OOM", "READONLY"} {
				count, _ := strings.CutPrefix(info["Errorstats"]["errorstat_"+code], "count=")
				n, _ := strconv.ParseFloat(count, 64) // absent until the first error
				refusedWrites += n
			}
			j.reportFound(writes.Sample(f.now(), refusedWrites))
			j.reportFound(others.Sample(f.now(), total-refusedWrites))
			return nil
		})
	})
}
