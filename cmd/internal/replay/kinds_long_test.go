//go:build real && !race

package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Every event and every bound on real traces is that of the reference. That holds for all kinds
// of threshold, by each exit, hold and cool-down in [exact.Kinds]. cmd/verifyreplay does the same
// with the binary, on all traces and for each min from 1 to 20. As with other long traces, the
// race detector finds little here.
func TestTracesOfAllKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, c := range []struct {
		trace, by string
		d         time.Duration
	}{
		{"edgar-2017-06-30.access.log.zst", "cik", time.Second},
		{"semicomplete-apache_logs.log.zst", "each", time.Minute},
		{"scan-acunetix.log.zst", "each", 15 * time.Second},
	} {
		t.Run(fmt.Sprint(c.trace, "/", c.by, "/", c.d), func(t *testing.T) {
			path := testenv.SharedData(t, c.trace)
			requests := readTrace(t, path)
			events := 0
			for _, least := range []int64{1, 2, 3, 5, 9, 20} {
				log, err := accesslog.Open([]string{path}, accesslog.Options{})
				if err != nil {
					t.Fatal(err)
				}
				wrong, n := verifyRules(t, log, all(requests), exact.Kinds(c.by, least, c.d))
				for _, w := range wrong {
					t.Errorf("min %d: %s", least, w)
				}
				events += n
			}
			if t.Logf("%d events", events); events == 0 {
				t.Error("no event: nothing was compared")
			}
		})
	}
}
