package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

func suspectTexts(out *recorder) (texts []string) {
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, h := range out.suspects {
		texts = append(texts, h.Text)
	}
	return texts
}

// A key below the threshold that hidden counts may lift above it is suspect. It becomes suspect at
// once when it is counted, and stops when nothing is hidden.
func TestDetectorSuspectsWhatMayBeHot(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, time.Second)), Publisher: out, Part: 0})
	count := func(text string, n int64, at time.Duration) {
		d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: noon.Add(at)})
	}
	d.Advance(noon)
	count("before", 80, 0)
	if len(out.suspects) != 0 {
		t.Fatalf("suspects %+v, and nothing is hidden", out.suspects)
	}
	d.SetHeldBackBound(0, 30, 30)
	count("near", 70, 0)
	count("far", 69, 0)
	d.Advance(noon.Add(100 * time.Millisecond))
	if got := fmt.Sprint(suspectTexts(out)); got != "[near]" {
		t.Fatalf("suspects %v, want the one that was counted", got)
	}
	if h := out.suspects[0]; h.Low != 70 || h.High != 100 || h.Rate != 70 || h.Rule != "r" || !h.Since.Equal(noon) {
		t.Errorf("suspect %+v", h)
	}
	count("near", 30, 100*time.Millisecond)
	d.Advance(noon.Add(1050 * time.Millisecond)) // a second later all are looked at
	if got := fmt.Sprint(suspectTexts(out)); got != "[]" || d.Stats().Suspects != 0 {
		t.Errorf("suspects %v: near is hot, the counts of the others have left the window", got)
	}
	if len(out.hot()) != 1 {
		t.Errorf("hot are %v, want near alone", out.hot())
	}
}

func TestDetectorLooksForSuspectsAmongAllKeys(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 100, 10*time.Second)), Publisher: out})
	d.Advance(noon)
	d.SetHeldBackBound(0, 1, 1) // keys near the threshold have their text from now on
	for _, n := range []int64{75, 99, 90} {
		d.Count(decode.Count{Hash: uint64(n), Text: fmt.Appendf(nil, "k%d", n), N: n, When: noon})
	}
	d.AddHiddenCounts(noon, 29)
	for _, n := range []int64{75, 90} { // counted once more, they get their text
		d.Count(decode.Count{Hash: uint64(n), Text: fmt.Appendf(nil, "k%d", n), N: 1, When: noon})
	}
	d.Advance(noon.Add(time.Second))
	if got := fmt.Sprint(suspectTexts(out)); got != "[k99 k90 k75]" {
		t.Errorf("suspects %v, want all, the highest first", got)
	}
	d.SetHeldBackBound(0, 0, 0)
	d.Advance(noon.Add(11 * time.Second))
	if got := fmt.Sprint(suspectTexts(out)); got != "[]" {
		t.Errorf("suspects %v, and nothing is hidden any more", got)
	}
}

// A detector has at most a thousand suspects: the keys of a rule with the highest counts. It
// publishes them at most once each 100 ms.
func TestDetectorBoundsItsSuspects(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 10_000, time.Second)), Publisher: out})
	d.Advance(noon)
	d.SetHeldBackBound(0, 10_000, 10_000)
	for i := range 3000 {
		d.Count(decode.Count{Hash: testHash(fmt.Sprint(i)), Text: fmt.Append(nil, i), N: int64(i + 1), When: noon})
	}
	d.Advance(noon.Add(10 * time.Millisecond))
	first := len(out.suspects)
	d.Advance(noon.Add(900 * time.Millisecond))
	for i := range 3000 {
		d.Count(decode.Count{Hash: testHash(fmt.Sprint(i)), Text: fmt.Append(nil, i), N: 1, When: noon.Add(900 * time.Millisecond)})
	}
	d.Advance(noon.Add(1010 * time.Millisecond)) // all are looked at
	if n := len(out.suspects); first > maxSuspects || n != maxSuspects || d.Stats().Suspects != maxSuspects {
		t.Fatalf("%d suspects, then %d, %d by the figures", first, n, d.Stats().Suspects)
	}
	for i := range out.suspects[1:] {
		if out.suspects[i].Ratio < out.suspects[i+1].Ratio || out.suspects[i].Low < out.suspects[i+1].Low {
			t.Fatalf("suspect %d has %d, the next %d", i, out.suspects[i].Low, out.suspects[i+1].Low)
		}
	}
}

// Suspects of a rule that counts bytes do not displace suspects of a rule that counts requests,
// neither when they come first nor when all are checked. Beyond the guaranteed part, the suspects
// nearest to their threshold are listed.
func TestDetectorSharesItsSuspects(t *testing.T) {
	out := newRecorder()
	rules := testRules(hotRule("files", 100_000, time.Second), hotRule("terms", 100, time.Second), hotRule("idle", 1, time.Hour))
	d := NewDetector(DetectorConfig{Rules: rules, Publisher: out})
	count := func(at time.Duration, keys ...int) {
		for i := range 3000 {
			d.Count(decode.Count{Hash: testHash(fmt.Sprint("f", i)), Text: fmt.Append(nil, "f", i), N: int64(60_000 + i), When: noon.Add(at)})
		}
		for _, i := range keys {
			d.Count(decode.Count{Rule: 1, Hash: testHash(fmt.Sprint("t", i)), Text: fmt.Append(nil, "t", i), N: int64(80 + i%10), When: noon.Add(at)})
		}
	}
	of := func() (files, terms int) {
		for _, h := range out.suspects {
			if h.Rule == "files" {
				files++
			} else {
				terms++
			}
		}
		return files, terms
	}
	d.Advance(noon)
	d.SetHeldBackBound(0, 50_000, 50_000)
	d.SetHeldBackBound(1, 50, 50)
	count(0, 1, 2, 3)
	d.Advance(noon.Add(100 * time.Millisecond))
	if files, terms := of(); files != maxSuspects || terms != 3 {
		t.Errorf("%d files and %d terms are suspect as they come, want all terms", files, terms)
	}
	d.Advance(noon.Add(900 * time.Millisecond))
	var many []int
	for i := range 600 {
		many = append(many, i)
	}
	count(1050*time.Millisecond, many...)
	d.Advance(noon.Add(1100 * time.Millisecond)) // all are looked at
	if files, terms := of(); files+terms != maxSuspects || terms != 600 {
		t.Errorf("%d files and %d terms are suspect, want all terms: they are nearer to their threshold", files, terms)
	}
	if h := out.suspects[0]; h.Rule != "terms" || h.Low != 89 || h.Ratio != 0.89 {
		t.Errorf("the first suspect is %+v", h)
	}
	d.Advance(noon.Add(3 * time.Second))
	d.Advance(noon.Add(5 * time.Second))
	d.SetHeldBackBound(0, 0, 0)
	d.SetHeldBackBound(1, 0, 0)
	d.Advance(noon.Add(7 * time.Second))
	for i, r := range d.rules {
		if r.suspects != 0 || len(d.suspects.list) != 0 {
			t.Errorf("%d suspects of rule %d are left, %d in sum", r.suspects, i, len(d.suspects.list))
		}
	}
}

// A key without an entry is suspect when its cell can hide the threshold.
func TestDetectorSuspectsKeysWithoutAnEntry(t *testing.T) {
	out := newRecorder()
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 40, time.Minute)), Publisher: out, Memory: 20_000})
	truth := make(map[string]int64)
	now := noon
	for i := range 40_000 {
		now = now.Add(100 * time.Microsecond)
		if i%100 == 0 {
			d.Advance(now)
		}
		text := fmt.Sprint("k", i%2000)
		truth[text]++
		d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: 1, When: now})
	}
	if d.Stats().Floor < 40 {
		t.Fatalf("the floor is %d: the test shows nothing", d.Stats().Floor)
	}
	d.Advance(now.Add(time.Second))
	if len(out.suspects) == 0 {
		t.Fatal("no suspects")
	}
	for _, h := range out.suspects {
		if n := truth[h.Text]; h.Low > n || h.High < n || h.High < 40 {
			t.Errorf("suspect %s counts %d to %d, it has %d", h.Text, h.Low, h.High, n)
		}
	}
	var none published.Hot
	if out.suspects[0] == none {
		t.Error("an empty suspect")
	}
}
