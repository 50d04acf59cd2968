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
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// DetectConfig configures [Detect]. Rules, Memory, and either Generate or Log are required.
type DetectConfig struct {
	// Rules holds one rule with one absolute threshold.
	Rules *rules.Rules
	// Memory is the detector's memory budget in bytes.
	Memory int64
	// Generate describes a stream to generate, Log one to read.
	Generate *Generate
	Log      *accesslog.Log
	// Progress, if not nil, is called with the number of processed events and the total, which is
	// -1 if unknown.
	Progress func(done, total int64)
}

// Generate describes a stream by Zipf's law: Windows times Events events, drawn from Keys keys.
type Generate struct {
	Zipf    float64
	Keys    int
	Events  int
	Windows int
	Seed    uint64
}

// DetectResult compares detection with an exact count. A key is truly hot if its exact count
// reached the threshold, at any event, in the panes of the window that ends there. A key is hot
// if the detector published it.
type DetectResult struct {
	Precision        *float64 `json:"precision"` // null if nothing was hot
	Recall           *float64 `json:"recall"`    // null if nothing was truly hot
	MissedAboveFloor int      `json:"missed_above_floor"`
	FalseHot         int      `json:"false_hot"`
	Floor            int64    `json:"floor"`             // highest floor at the end of any pane
	Threshold        int64    `json:"threshold"`         // the result is meaningless unless it is above the floor
	Bounds           int      `json:"bounds"`            // published pairs of low and high
	WrongBounds      int      `json:"wrong_bounds"`      // pairs with low above or high below the exact count
	Cooled           int      `json:"cooled"`            // number of times that a key cooled
	CooledEarly      int      `json:"cooled_early"`      // number of these at or above the exit
	CooledLate       int      `json:"cooled_late"`       // keys that stayed hot for over two seconds too long
	EventsPerSecond  float64  `json:"events_per_second"` // per second of processor time
	MemoryBytes      int64    `json:"memory_bytes"`      // heap of decoder and detector at the end

	Events int64  `json:"-"`
	Keys   int    `json:"-"` // distinct keys
	Hot    int    `json:"-"`
	Near   []Near `json:"-"`
}

// Near is the number of truly hot keys whose peak was at least From and below To times the
// threshold, and how many of them were found.
type Near struct {
	From, To  float64
	True, Hot int
}

// LineRules returns the rules for a generated stream: one threshold over one window.
func LineRules(hot rules.Rate) *rules.Rules { return lineRules(rules.NewThreshold(hot)) }

// Detect sends a stream through decoder and detector, as lines of one count each on the stream's
// own clock, and also through an exact count. A pane's events are generated before they are
// timed, so only decoder and detector are timed.
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
	b := new(packetBatch)
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
		if len(b.times) > 0 {
			pane := b.times[0] / exact.pane
			d.judging.panesOver(pane, time.Unix(0, b.times[0]), result.Floor)
			b.each(func(packet []byte, sent time.Time) { lines.Packet(packet, sent, exact) })
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
		return DetectResult{}, fmt.Errorf("bench: %[2]d of %[1]d lines were counts", counts.Lines, counts.Counts)
	}
	d.coolAll(result.Floor)
	if took > 0 {
		result.EventsPerSecond = math.Round(float64(result.Events) / took.Seconds())
	}
	result.MemoryBytes = d.release()
	runtime.KeepAlive(b) // the decoder references its last packet, which belongs to b
	result.judge(exact, d.hot, threshold.N)
	j := d.judging
	result.Bounds, result.WrongBounds, result.Cooled, result.CooledEarly = j.bounds, j.wrongBounds, j.cooled, j.cooledEarly
	result.CooledLate = len(j.late)
	return result, nil
}

// judge compares the hot keys with the exact count.
func (r *DetectResult) judge(exact *exactCounts, hot map[string]struct{}, threshold int64) {
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

// nearBuckets returns multiples of the threshold: the nearer to it, the harder to detect.
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

// detection is the measured detector and its publisher.
type detection struct {
	discardPublisher // of suspects and instances

	decoder   *decode.Decoder
	detector  *aggregator.Detector
	hot       map[string]struct{}
	advanced  time.Time
	refreshed time.Time // time of the last Refresh
	judging   *judging
}

// advanceEvery is the interval at which the detector is advanced, like that of a shard, which
// advances with each read.
const advanceEvery = time.Millisecond

// feed processes a batch and returns the processor time that it took.
func (d *detection) feed(b *packetBatch) (time.Duration, error) {
	from, err := cpuTime()
	if err != nil {
		return 0, err
	}
	start := d.advanced
	if len(b.times) > 0 {
		start = time.Unix(0, b.times[0])
	}
	b.each(func(packet []byte, sent time.Time) {
		if sent.Sub(d.advanced) >= advanceEvery {
			d.advanced = sent
			d.detector.Advance(sent)
			if sent.Equal(start) && sent.Sub(d.refreshed) >= refreshEvery {
				d.refreshed = sent
				d.detector.Refresh()
			}
		}
		d.decoder.Packet(packet, sent, d.detector)
	})
	to, err := cpuTime()
	return to - from, err
}

// refreshEvery is the interval at which the counts of hot keys are published. That happens
// between two panes, so that their window is known.
const refreshEvery = time.Second

// coolAll advances the time after the stream until every key must have cooled, and judges the
// published changes. A key that is still hot then is late.
func (d *detection) coolAll(floor int64) {
	j := d.judging
	pane := d.advanced.UnixNano()/j.exact.pane + 1
	t := j.threshold
	// Hidden counts leave with their cell, some panes after their window.
	last := pane + int64(t.Rate.Per+t.Hold+t.CoolDown+slack)/j.exact.pane + int64(j.exact.panes)
	for ; pane <= last; pane++ {
		now := time.Unix(0, pane*j.exact.pane)
		d.advanced = now
		d.detector.Advance(now)
		if now.Sub(d.refreshed) >= refreshEvery {
			d.refreshed = now
			d.detector.Refresh()
		}
		j.panesOver(pane, now, floor)
		j.paneCounted(pane)
	}
	for text := range j.hot {
		j.late[text] = struct{}{}
	}
}

// release drops the detector and returns the heap that it held.
func (d *detection) release() int64 {
	held := heap()
	d.decoder, d.detector = nil, nil
	return held - heap()
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one frees the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Publish implements [aggregator.Publisher].
func (d *detection) Publish(c published.Change) {
	for _, h := range c.Hot {
		d.hot[h.Text] = struct{}{}
		d.judging.published = append(d.judging.published, telling{Hot: h, kind: becameHot})
	}
	for _, h := range c.Cool {
		d.judging.published = append(d.judging.published, telling{Hot: h, kind: becameCool})
	}
}

// Refresh implements [aggregator.Publisher].
func (d *detection) Refresh(_ int, hot []published.Hot) {
	for _, h := range hot {
		d.judging.published = append(d.judging.published, telling{Hot: h, kind: refreshed})
	}
}
