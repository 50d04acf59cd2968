package rules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for s, want := range map[string]Rate{
		"200/s":      {200, time.Second},
		"10/500ms":   {10, 500 * time.Millisecond},
		"60/1m":      {60, time.Minute},
		"60/m":       {60, time.Minute},
		"1/h":        {1, time.Hour},
		"5/1h30m":    {5, 90 * time.Minute},
		"7/d":        {7, 24 * time.Hour},
		"7/2d":       {7, 48 * time.Hour},
		"10/1w":      {10, 7 * 24 * time.Hour},
		"10/w":       {10, 7 * 24 * time.Hour},
		"10/1d12h":   {10, 36 * time.Hour},
		"0.5/s":      {1, 2 * time.Second},
		".5/1m":      {1, 2 * time.Minute},
		"2.5/s":      {5, 2 * time.Second},
		"1.50/500ms": {3, time.Second},
		"2.0/s":      {2, time.Second},
		"0.3/s":      {3, 10 * time.Second},
		"0.01/s":     {1, 100 * time.Second},
		"0.5/1w":     {1, 14 * 24 * time.Hour},
		" 5 / 1.5s ": {5, 1500 * time.Millisecond}, //nolint:gocritic // the spaces are the point
		"3/.5s":      {3, 500 * time.Millisecond},
		"10000000/s": {10_000_000, time.Second},
		"9/µs":       {9, time.Microsecond},
	} {
		if got, err := ParseRate(s); got != want || err != nil {
			t.Errorf("ParseRate(%q) is %+v, %v; want %+v", s, got, err, want)
		}
	}
}

func TestParseRateTellsWhatIsWrong(t *testing.T) {
	for s, want := range map[string]error{
		"":                        errRateForm,
		"200":                     errRateForm,
		"/s":                      errRateCount,
		"0/s":                     errRateCount,
		"-1/s":                    errRateCount,
		"0.0/s":                   errRateCount,
		"-.5/s":                   errRateCount,
		"./s":                     errRateCount,
		"1e3/s":                   errRateCount,
		"0.123456789/s":           ErrDigits,
		"0.333/s":                 errors.New("exactly it is 333/16m40s, and nearly 1/3s"),
		"33.33/s":                 errors.New("exactly it is 3333/1m40s"),
		"0.5/106751d":             errRatePer,
		"0.0000001/10000d":        errRatePer,
		"9223372036854775808/s":   errRateCount,
		"1/":                      errRatePer,
		"1/0s":                    errRatePer,
		"1/-1s":                   errRatePer,
		"1/+1s":                   errRatePer,
		"1/x":                     errRatePer,
		"1/5":                     errRatePer,
		"1/0d":                    errRatePer,
		"1/106752d":               errRatePer,
		"1/s/s":                   errRatePer,
		"10000001/s":              errRateHigh,
		"11/µs":                   errRateHigh,
		"9223372036854775807/24h": errRateHigh,
	} {
		if r, err := ParseRate(s); err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("ParseRate(%q) is %+v, %v; want %v", s, r, err, want)
		}
	}
}

func TestRateReadsBackAsItIsWritten(t *testing.T) {
	for want, r := range map[string]Rate{
		"200/s": {200, time.Second}, "60/1m": {60, time.Minute}, "1/1h": {1, time.Hour}, "1/10m": {1, 10 * time.Minute},
		"10/7d": {10, 7 * 24 * time.Hour}, "1/1d": {1, 24 * time.Hour}, "10/36h": {10, 36 * time.Hour},
		"1/1h10m": {1, 70 * time.Minute}, "1/1m30s": {1, 90 * time.Second}, "1/20h": {1, 20 * time.Hour}, "": {},
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v is written %q, want %q", r, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		r := Rate{rapid.Int64Range(1, 1_000_000).Draw(t, "n"), time.Duration(rapid.Int64Range(1, 100_000).Draw(t, "per")) * unit}
		if r.PerSecond() > MaxRate {
			t.Skip("too high")
		}
		if got, err := ParseRate(r.String()); got != r || err != nil {
			t.Fatalf("%+v is written %q, which reads %+v, %v", r, r, got, err)
		}
	})
}

func TestPerSecond(t *testing.T) {
	for r, want := range map[Rate]float64{{}: 0, {60, time.Minute}: 1, {1, time.Hour}: 1.0 / 3600, {5, 100 * time.Millisecond}: 50} {
		if got := r.PerSecond(); got != want {
			t.Errorf("%v is %v per second, want %v", r, got, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"200/s", "60/1m", "7/2d", "1/.5s", "1/1h2m3.4s", "10/1w2d3h", "0.5/s", "2.5/1d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		if r.N < 1 || r.Per <= 0 || r.PerSecond() > MaxRate {
			t.Fatalf("ParseRate(%q) is %+v", s, r)
		}
		if again, err := ParseRate(r.String()); again != r || err != nil {
			t.Fatalf("%q is written %q, which reads %+v, %v", s, r, again, err)
		}
	})
}
