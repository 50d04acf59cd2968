package base

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "1h30m": 90 * time.Minute, ".5s": 500 * time.Millisecond, "0": 0, "9µs": 9 * time.Microsecond,
		"1d": day, "1w": 7 * day, "1d12h": 36 * time.Hour, "2w3d4h5m6.5s": 17*day + 4*time.Hour + 5*time.Minute + 6500*time.Millisecond,
		"1.5d": 36 * time.Hour, ".5w": 84 * time.Hour, "12h1d": 36 * time.Hour, "1d500ms": day + 500*time.Millisecond,
		"-1d1h": -25 * time.Hour, "+1d": day, "0d": 0, "106751d": 106751 * day,
	} {
		if got, err := ParseDuration(s); got != want || err != nil {
			t.Errorf("Parse(%q) is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "d", "w", "1", "1x", "1dd", "1d2", "d1", "1d-2h", "--1d", "1 d", "106752d", "15251w", "1D", "9999999999999999999d"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("Parse(%q) is %v; want an error", s, d)
		}
	}
}

// Durations are read as package time reads them, also after whole days and weeks.
func TestParseDurationExtendsPackageTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "d"))
		days := rapid.IntRange(0, 6).Draw(t, "days")
		long := time.Duration(days) * 24 * time.Hour
		for s, want := range map[string]time.Duration{
			d.String(): d, "-" + d.String(): -d,
			string(rune('0'+days)) + "d" + d.String(): long + d,
			string(rune('0'+days)) + "w" + d.String(): 7*long + d,
		} {
			if got, err := ParseDuration(s); got != want || err != nil {
				t.Fatalf("Parse(%q) is %v, %v; want %v", s, got, err, want)
			}
		}
	})
}

func TestDurationFlag(t *testing.T) {
	var d time.Duration
	f := (*DurationFlag)(&d)
	if s := f.String(); s != "0" {
		t.Errorf("no duration is written %q", s)
	}
	if err := f.Set("1d12h"); err != nil || d != 36*time.Hour || f.String() != "36h0m0s" || f.Type() != "duration" {
		t.Errorf("%v, %v, %s", d, err, f)
	}
	if err := f.Set("soon"); err == nil || d != 36*time.Hour {
		t.Errorf("%v, %v", d, err)
	}
}
