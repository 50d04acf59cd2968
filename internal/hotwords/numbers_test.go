package hotwords_test

import (
	"testing"

	"github.com/hotparam/hotparam/internal/hotwords"
)

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := hotwords.Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
