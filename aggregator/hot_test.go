package aggregator

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// After a loss, the published bounds of a hot key belong to a window that neither begins nor ends
// where the loss may lie, if there is one. Otherwise they belong to the newest window.
func TestPublishedBoundsAreOfAClearWindow(t *testing.T) {
	const each, flushes = 20, 40 // 200 in each second
	text := []byte("GET /s?q=k")
	hash := rules.Hash(text)
	for lost := range flushes { // the flush that is lost, from the newest back
		for _, healed := range []bool{false, true} {
			d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, time.Second)), Publisher: newRecorder(), Lag: decode.DefaultLag})
			at := func(flush int) time.Time { return noon.Add(time.Duration(flush) * base.FlushInterval) }
			for flush := range flushes {
				d.Advance(at(flush))
				if flush == flushes-1-lost {
					continue
				}
				d.Count(decode.Count{Hash: hash, Text: text, N: each, When: at(flush)})
			}
			if healed { // it may have been of the flush after, too
				d.AddHealedCount(decode.Count{Hash: hash, Text: text, N: each, When: at(flushes - 1 - lost)}, at(flushes-lost))
			} else {
				d.RecordGap(decode.Gap{ID: 1, From: at(flushes - 1 - lost), To: at(flushes - 1 - lost), Loose: each})
			}
			d.Advance(at(flushes))
			if len(d.rules[0].hot) != 1 {
				t.Fatal("the key is not hot")
			}
			v := d.rules[0].views[0]
			w := d.rules[0].hot[0]
			h := w.describeNow()
			closedLow, closedHigh := w.bounds(v, v.closed)
			possible := false
			for pane := v.closed; pane > v.closed-6; pane-- {
				low, high := w.bounds(v, pane)
				possible = possible || high != published.Unknown && high-low <= 10
			}
			if apart := h.High - h.Low; possible && apart > 10 {
				t.Errorf("lost %d flushes ago, healed %v: %d to %d are published, the newest window has %d to %d", lost, healed, h.Low, h.High, closedLow, closedHigh)
			}
			if h.Low > flushes/4*each || h.High != published.Unknown && h.High < flushes/4*each-each {
				t.Errorf("lost %d flushes ago, healed %v: %d to %d are published, a second has 200", lost, healed, h.Low, h.High)
			}
			if closedHigh-closedLow <= 10 && h.Low < closedLow {
				t.Errorf("lost %d flushes ago, healed %v: low is %d, and %d in the newest window", lost, healed, h.Low, closedLow)
			}
		}
	}
}

// Windows from before a key became hot do not explain why it is hot, however clear they are.
func TestPublishedBoundsAreNotOfBefore(t *testing.T) {
	text := []byte("GET /s?q=k")
	hash := rules.Hash(text)
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, time.Second)), Publisher: newRecorder(), Lag: decode.DefaultLag})
	began := noon.Add(2 * time.Second)
	d.Advance(noon)
	d.Advance(began)
	d.Count(decode.Count{Hash: hash, Text: text, N: 300, When: began})
	d.RecordGap(decode.Gap{ID: 1, From: began, To: began, Loose: 50})
	for at := time.Duration(0); at < 500*time.Millisecond; at += base.FlushInterval {
		d.Advance(began.Add(at + 5*base.FlushInterval))
		if h := d.rules[0].hot[0].describeNow(); h.Low < 100 {
			t.Errorf("%v after it became hot: %d to %d are published", at, h.Low, h.High)
		}
	}
}
