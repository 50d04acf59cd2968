package baseline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The ways to form one baseline from several days, the newest first.
var policies = map[string]func(days []float64) float64{
	"highest":        slices.Max[[]float64],
	"second highest": func(days []float64) float64 { return ranked(days, max(0, len(days)-2)) },
	"median":         func(days []float64) float64 { return ranked(days, (len(days)-1)/2) },
}

func ranked(days []float64, at int) float64 {
	sorted := slices.Clone(days)
	slices.Sort(sorted)
	return sorted[at]
}

// week holds a key's hourly counts over eight days. The last day is compared with the others.
type week struct {
	rates   [9 * 24]float64
	history int // days before the last
	spoilt  bool
}

// drawWeek draws a key with a daily peak, a quieter or busier weekend, and noise. In half of the
// weeks one of the earlier days has an attack of some hours.
func drawWeek(r *rand.Rand) (w week) {
	w.history = 1 + r.IntN(History)
	peak, height, weekend := r.Float64()*24, 2+r.Float64()*10, math.Exp(r.Float64()*2.5-1)
	sharp, first := 1+r.Float64()*5, r.IntN(7)
	for hour := range w.rates {
		day, of := hour/24, float64(hour%24)
		late := r.Float64() - 0.5 // the peak is not always at the same minute
		wave := math.Pow((1+math.Cos((of-peak+late)*math.Pi/12))/2, sharp)
		w.rates[hour] = 1000 * (1 + height*wave) * math.Exp(r.NormFloat64()*0.2)
		if (first+day)%7 >= 5 {
			w.rates[hour] *= weekend
		}
	}
	if w.spoilt = r.IntN(2) == 0; w.spoilt {
		from, length := (7-r.IntN(min(7, w.history)))*24+r.IntN(24), 2+r.IntN(8)
		for hour := from; hour < min(from+length, 8*24); hour++ {
			w.rates[hour] *= 20
		}
	}
	return w
}

// baseline returns the baseline of an hour of the last day.
func (w *week) baseline(hour int, policy func([]float64) float64) float64 {
	var days []float64
	for day := 1; day <= w.history; day++ {
		same := hour - 24*day
		days = append(days, slices.Max(w.rates[max(0, same-1):min(len(w.rates), same+2)]))
	}
	return policy(days)
}

// The median is the policy because, over random weeks, it hides far fewer attacks than the
// alternatives and has false jumps in less than one hour of a hundred. One attack misleads the
// highest day for a week, and two busy days mislead the second highest. A jump is four times the
// baseline, an attack ten times the key's usual count.
func TestMedianDayIsTheBestBaseline(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	hours, wrong, hidden := 0, make(map[string]int), make(map[string]int)
	for range 4000 {
		w := drawWeek(r)
		if w.history < 3 {
			continue // with one day or two all have little to go by
		}
		for hour := 8 * 24; hour < 9*24-1; hour++ {
			hours++
			for name, policy := range policies {
				base := w.baseline(hour, policy)
				if w.rates[hour] >= 4*base {
					wrong[name]++
				}
				if 10*w.rates[hour] < 4*base {
					hidden[name]++
				}
			}
		}
	}
	for name := range policies {
		t.Logf("%-15s %6d false jumps, %6d attacks hidden, of %d", name, wrong[name], hidden[name], hours)
	}
	const best = "median"
	if 100*wrong[best] >= hours {
		t.Errorf("%d false jumps in %d hours", wrong[best], hours)
	}
	for name := range policies {
		if name != best && 3*hidden[best] > hidden[name] {
			t.Errorf("%s hides %d attacks, %s only %d", best, hidden[best], name, hidden[name])
		}
	}
}

// The reference is the median: attacks on up to three days of seven, however high, do not change
// it if the days are alike.
func TestAttacksOfThreeDaysChangeNoBaseline(t *testing.T) {
	for first := int64(1); first <= History; first++ {
		calm, spoilt := NewDays("a"), NewDays("b")
		for day := int64(1); day <= History; day++ {
			for hour := range int64(24) {
				n := 1000 + 100*hour
				calm.Merge("x", hourWith(monday-24*day+hour, hourSeconds, 1, n))
				if day >= first && day < first+3 && hour >= 6 && hour < 20 {
					n *= 50
				}
				spoilt.Merge("x", hourWith(monday-24*day+hour, hourSeconds, 1, n))
			}
		}
		for hour := monday; hour < monday+24; hour++ {
			want, _ := calm.Reference(hour, testRule, 1)
			if got, _ := spoilt.Reference(hour, testRule, 1); got != want {
				t.Fatalf("attacks from %d days ago on, hour %d: %+v, want %+v", first, hour-monday, got, want)
			}
		}
	}
}
