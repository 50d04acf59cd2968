package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// DetectConfig selects the stream and the rules. Rules, Memory and one of Generate and
// Log are required.
type DetectConfig struct {
	// Rules is one rule with one absolute threshold.
	Rules *rules.Rules
	// Memory is how many bytes the detector may take.
	Memory int64
	// Generate is a stream to make, Log one to read.
	Generate *Generate
	Log      *accesslog.Log
	// Progress is told how much of the stream is over, of how much; total is -1
	// where that is not known. Nil: nobody is.
	Progress func(done, total int64)
}

// Generate is a stream by Zipf's law: Windows times Events events, of Keys keys.
type Generate struct {
	Zipf    float64
	Keys    int
	Events  int
	Windows int
	Seed    uint64
}

// DetectResult says how good detection was beside an exact count. A key is truly
// hot if its true count in some window, that is in the panes of the window until
// any event, reached the threshold. What was hot is what the detector published.
type DetectResult struct {
	Precision        *float64 `json:"precision"` // null where nothing was hot
	Recall           *float64 `json:"recall"`    // null where nothing was truly hot
	MissedAboveFloor int      `json:"missed_above_floor"`
	FalseHot         int      `json:"false_hot"`
	Floor            int64    `json:"floor"`             // the highest at the end of any pane
	Threshold        int64    `json:"threshold"`         // above the floor, or nothing is shown
	Bounds           int      `json:"bounds"`            // pairs of low and high that were published
	WrongBounds      int      `json:"wrong_bounds"`      // of these, low above or high below the exact count
	Cooled           int      `json:"cooled"`            // times that a key cooled
	CooledEarly      int      `json:"cooled_early"`      // of these, at the exit or above it
	CooledLate       int      `json:"cooled_late"`       // keys that stayed hot by more than two seconds
	EventsPerSecond  float64  `json:"events_per_second"` // of processor time
	MemoryBytes      int64    `json:"memory_bytes"`      // of the heap, that decoder and detector hold at the end

	Events int64  `json:"-"`
	Keys   int    `json:"-"` // distinct
	Hot    int    `json:"-"`
	Near   []Near `json:"-"`
}

// Near is how many truly hot keys had a peak of at least From and below To times the
// threshold, and how many of them were found.
type Near struct {
	From, To  float64
	True, Hot int
}

// LineRules are the rules for a generated stream: one threshold over one window.
func LineRules(hot rules.Rate) *rules.Rules { return lineRules(rules.NewThreshold(hot)) }

// Detect sends a stream through decoder and detector, as lines of one count each on
// the stream's own clock, and beside it through an exact count. A pane's events are
// made before they are timed; only decoder and detector are.
func Detect(ctx context.Context, c DetectConfig) (DetectResult, error) {
	threshold := c.Rules.Rules[0].Hot[0].Rate
	window := c.Rules.Rules[0].Hot[0].Window()
	source, close, err := c.stream(ctx, window)
	if err != nil {
		return DetectResult{}, err
	}
	defer close()
	exact, lines := newReference(window), decode.NewDecoder(c.Rules, wire.Plain)
	d := &detection{decoder: decode.NewDecoder(c.Rules, wire.Plain), hot: make(map[string]struct{}), judging: newJudging(exact, &c.Rules.Rules[0].Hot[0])}
	d.detector = aggregator.NewDetector(aggregator.DetectorConfig{Rules: c.Rules, Publisher: d, Memory: c.Memory})

	result := DetectResult{Threshold: threshold.N}
	var took time.Duration
	b := new(batch)
	for {
		b.reset()
		more, err := source.fill(b)
		if err != nil {
			return DetectResult{}, err
		}
		fed, err := d.feed(b)
		if err != nil {
			return DetectResult{}, err
		}
		took += fed
		if len(b.at) > 0 {
			pane := b.at[0] / exact.pane
			d.judging.panesOver(pane, time.Unix(0, b.at[0]), result.Floor)
			b.each(func(packet []byte, at time.Time) { lines.Packet(packet, at, exact) })
			d.judging.paneCounted(pane)
		}
		result.Floor = max(result.Floor, d.detector.Stats().Floor)
		result.Events += int64(b.events)
		if err := ctx.Err(); err != nil {
			return DetectResult{}, err
		}
		if c.Progress != nil {
			c.Progress(source.progress())
		}
		if !more {
			break
		}
	}
	if counts := lines.Stats(); counts.Counts != counts.Lines {
		return DetectResult{}, fmt.Errorf("bench: of %d lines %d were counts", counts.Lines, counts.Counts)
	}
	d.silence(result.Floor)
	if took > 0 {
		result.EventsPerSecond = math.Round(float64(result.Events) / took.Seconds())
	}
	result.MemoryBytes = d.release()
	runtime.KeepAlive(b) // the decoder has views of its last packet, which is ours
	result.judge(exact, d.hot, threshold.N)
	j := d.judging
	result.Bounds, result.WrongBounds, result.Cooled, result.CooledEarly = j.bounds, j.wrongBounds, j.cooled, j.cooledEarly
	result.CooledLate = len(j.late)
	return result, nil
}

// judge compares what was hot with the exact count.
func (r *DetectResult) judge(exact *reference, hot map[string]struct{}, threshold int64) {
	r.Keys, r.Hot = len(exact.keys), len(hot)
	r.Near = nearBuckets()
	truly, found := 0, 0
	for text, id := range exact.ids {
		_, isHot := hot[text]
		peak := exact.keys[id].peak
		if peak < threshold {
			continue
		}
		truly++
		near := nearBucket(r.Near, float64(peak)/float64(threshold))
		near.True++
		if isHot {
			found++
			near.Hot++
		} else if peak >= threshold+r.Floor {
			r.MissedAboveFloor++
		}
	}
	r.FalseHot = len(hot) - found
	if len(hot) > 0 {
		precision := float64(found) / float64(len(hot))
		r.Precision = &precision
	}
	if truly > 0 {
		recall := float64(found) / float64(truly)
		r.Recall = &recall
	}
}

// nearBuckets are multiples of the threshold: the nearer, the harder to tell.
func nearBuckets() []Near {
	bounds := []float64{1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, math.Inf(1)}
	buckets := make([]Near, len(bounds)-1)
	for i := range buckets {
		buckets[i].From, buckets[i].To = bounds[i], bounds[i+1]
	}
	return buckets
}

func nearBucket(buckets []Near, multiple float64) *Near {
	for i := range buckets {
		if multiple < buckets[i].To {
			return &buckets[i]
		}
	}
	return &buckets[len(buckets)-1]
}

// detection is the measured detector, and its publisher.
type detection struct {
	decoder  *decode.Decoder
	detector *aggregator.Detector
	hot      map[string]struct{}
	advanced time.Time
	told     time.Time // when the hot keys' present counts were asked for
	judging  *judging
}

// advanceEvery is how often the detector is advanced: a shard is with each
// read.
const advanceEvery = time.Millisecond

// feed returns how much processor time a batch took.
func (d *detection) feed(b *batch) (time.Duration, error) {
	from, err := cpuTime()
	if err != nil {
		return 0, err
	}
	start := d.advanced
	if len(b.at) > 0 {
		start = time.Unix(0, b.at[0])
	}
	b.each(func(packet []byte, at time.Time) {
		if at.Sub(d.advanced) >= advanceEvery {
			d.advanced = at
			d.detector.Advance(at)
			if at.Equal(start) && at.Sub(d.told) >= refreshEvery {
				d.told = at
				d.detector.Refresh()
			}
		}
		d.decoder.Packet(packet, at, d.detector)
	})
	to, err := cpuTime()
	return to - from, err
}

// refreshEvery is how often the present counts of hot keys are told: between two panes, so
// that it is known of which window they are.
const refreshEvery = time.Second

// silence lets time pass after the stream until every key must be cool, and judges what
// is told meanwhile: one that is still hot then is late.
func (d *detection) silence(floor int64) {
	j := d.judging
	pane := d.advanced.UnixNano()/j.exact.pane + 1
	t := j.threshold
	// What is hidden leaves with its cell, some panes after its window.
	last := pane + int64(t.Rate.Per+t.Hold+t.CoolDown+slack)/j.exact.pane + int64(j.exact.panes)
	for ; pane <= last; pane++ {
		now := time.Unix(0, pane*j.exact.pane)
		d.advanced = now
		d.detector.Advance(now)
		if now.Sub(d.told) >= refreshEvery {
			d.told = now
			d.detector.Refresh()
		}
		j.panesOver(pane, now, floor)
		j.paneCounted(pane)
	}
	for text := range j.hot {
		j.late[text] = struct{}{}
	}
}

// release forgets the detector and returns how much of the heap it held.
func (d *detection) release() int64 {
	held := heap()
	d.decoder, d.detector = nil, nil
	return held - heap()
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one has found in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Publish implements [aggregator.Publisher].
func (d *detection) Publish(c rules.Change) {
	for _, h := range c.Hot {
		d.hot[h.Text] = struct{}{}
		d.judging.told = append(d.judging.told, telling{Hot: h, kind: becameHot})
	}
	for _, h := range c.Cool {
		d.judging.told = append(d.judging.told, telling{Hot: h, kind: becameCool})
	}
}

// Refresh implements [aggregator.Publisher].
func (d *detection) Refresh(_ int, hot []rules.Hot) {
	for _, h := range hot {
		d.judging.told = append(d.judging.told, telling{Hot: h, kind: refreshed})
	}
}

// Suspects implements [aggregator.Publisher].
func (*detection) Suspects(int, []rules.Hot) {}

// Instances implements [aggregator.Publisher].
func (*detection) Instances([]rules.Instance) {}
