package chaos

import (
	"math/rand/v2"
	"testing"
)

func TestSeriesGrow(t *testing.T) {
	for _, test := range []struct {
		name string
		at   func(i int) float64
		want bool
	}{
		{"flat", func(int) float64 { return 40 }, false},
		{"noisy", func(int) float64 { return 35 + 10*rand.Float64() }, false},
		{"a table that fills while it is warming up", func(i int) float64 { return min(40, float64(i)) }, false},
		{"a leak", func(i int) float64 { return 40 + float64(i)/5 }, true},
		{"one late leap", func(i int) float64 { return 40 + float64(i/130)*20 }, true},
		{"a peak in the end", func(i int) float64 { return 40 + float64(i/170)*100 }, false},
	} {
		s := figureSeries{figure: boundedFigure{"resident", "MB", 6}}
		for i := range 180 {
			s.values = append(s.values, test.at(i))
		}
		if got := s.grows(); got != test.want {
			first, last := s.thirds()
			t.Errorf("%s: grows %v, want %v: %.1f to %.1f", test.name, got, test.want, first, last)
		}
	}
}
