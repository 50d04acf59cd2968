package capacity

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// A route is slow above some rate. The median is weighted by requests, so quiet slow hours do not
// make the usual time.
func TestSeen(t *testing.T) {
	var r Route
	add := func(perSecond float64, each time.Duration) {
		n := int64(perSecond * Window.Seconds())
		r.Add(n, time.Duration(n)*each, Window)
	}
	if s := r.Seen(); s != (Seen{}) {
		t.Errorf("without windows %+v", s)
	}
	for range 20 {
		add(100, 10*time.Millisecond)
		add(400, 10*time.Millisecond)
		add(0, 0)
	}
	add(450, 14*time.Millisecond)
	add(455, 20*time.Millisecond) // at its end 600 a second came
	add(500, 16*time.Millisecond)
	add(520, 60*time.Millisecond)
	add(10, 60*time.Millisecond) // they have waited since the previous window
	add(0, 0)
	add(1, 60*time.Millisecond) // ten requests say nothing
	s := r.Seen()
	if !near(s.Usual, 0.01) || !near(s.Served, 450) || !near(s.SlowFrom, 500) || s.Slow != 4 || s.Windows != 46 || s.Requests != 20*5000+4500+4550+5000+5200+100+10 {
		t.Errorf("%+v", s)
	}
	if !s.IsEnough() {
		t.Error("46 windows are not enough")
	}
	add(10, 60*time.Millisecond)
	add(0, 0)
	if s := r.Seen(); !near(s.SlowFrom, 10) {
		t.Errorf("slow by itself: %+v", s)
	}
	if s.Windows = enoughWindows - 1; s.IsEnough() {
		t.Error("less than five minutes are enough")
	}
}

// Windows that are merged count as if they had been added to one route, and their groups stay few.
func TestMerge(t *testing.T) {
	var parts [2]Route
	var whole Route
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		n := random.Int64N(10_000)
		took := time.Duration(n) * time.Duration(math.Exp(random.Float64()*20)) * time.Microsecond / 100
		if i == 5000 {
			whole.Add(0, 0, Window)
		}
		parts[i/5000].Add(n, took, Window)
		whole.Add(n, took, Window)
	}
	whole.Add(0, 0, Window)
	var merged Route
	for i := range parts {
		parts[i].Add(0, 0, Window)
		merged.Merge(&parts[i])
	}
	if a, b := merged.Seen(), whole.Seen(); a != b {
		t.Errorf("merged %+v, whole %+v", a, b)
	}
	if n := len(whole.groups); n > 250 {
		t.Errorf("%d groups", n)
	}
}
