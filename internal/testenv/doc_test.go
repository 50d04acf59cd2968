package testenv

import (
	"runtime"
	"testing"
)

func TestUnavailableSkipsUnlessRealIsRequired(t *testing.T) {
	for _, test := range []struct{ ci, requireReal, want string }{
		{"", "", "skipped"},
		{"false", "0", "skipped"},
		{"true", "", "failed"},
		{"", "1", "failed"},
	} {
		t.Setenv("CI", test.ci)
		t.Setenv("HOTPARAM_REQUIRE_REAL", test.requireReal)
		if got := outcome(t, func(tb testing.TB) { Unavailable(tb, "no moon tonight") }); got != test.want {
			t.Errorf("CI=%q HOTPARAM_REQUIRE_REAL=%q: the test was %s, want %s", test.ci, test.requireReal, got, test.want)
		}
	}
}

func TestRedisWithoutServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "true")
	if got := outcome(t, func(tb testing.TB) { Redis(tb) }); got != "failed" {
		t.Errorf("Redis in CI without any server: the test was %s, want failed", got)
	}
}

// testOutcome is a testing.TB that records how the test would have ended.
type testOutcome struct {
	testing.TB
	word string
}

func (v *testOutcome) Skipf(string, ...any)  { v.endWith("skipped") }
func (v *testOutcome) Fatal(...any)          { v.endWith("failed") }
func (v *testOutcome) Fatalf(string, ...any) { v.endWith("failed") }

func (v *testOutcome) endWith(word string) {
	v.word = word
	runtime.Goexit()
}

func outcome(t *testing.T, body func(testing.TB)) string {
	v := &testOutcome{TB: t, word: "finished"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(v)
	}()
	<-done
	return v.word
}
