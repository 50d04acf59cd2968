package testenv

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestOutsideATest(t *testing.T) {
	var order []string
	var dir string
	err := Outside(t.Context(), t.TempDir(), func(tb testing.TB) {
		dir = tb.TempDir()
		tb.Cleanup(func() { order = append(order, "first") })
		tb.Cleanup(func() {
			order = append(order, "second")
			tb.Fatal("cleanup", "fails")
		})
		tb.Errorf("goes %s", "on")
		tb.Fatal("ends")
		order = append(order, "beyond its end")
	})
	if err == nil || err.Error() != "goes on\nends\ncleanup fails" || errors.Is(err, ErrSkipped) {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(order, ", "); got != "second, first" {
		t.Errorf("ran %q", got)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestOutsideATestThatIsSkipped(t *testing.T) {
	err := Outside(t.Context(), t.TempDir(), func(tb testing.TB) { tb.Skipf("no %s", "Envoy") })
	if !errors.Is(err, ErrSkipped) || err.Error() != "skipped: no Envoy" {
		t.Errorf("error %v", err)
	}
	if err := Outside(t.Context(), t.TempDir(), func(testing.TB) {}); err != nil {
		t.Error(err)
	}
}
