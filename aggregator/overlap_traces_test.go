//go:build !race

package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	reference "github.com/hotparam/hotparam/internal/exact"
	"github.com/hotparam/hotparam/internal/pace"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The same of the parameters of real requests, whatever their route.
func TestOverlappingKeysOfTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, c := range []struct {
		trace string
		n     int64
	}{
		{"semicomplete-apache_logs.log.zst", 2},
		{"scan-acunetix.log.zst", 5},
		{"ruetoj-2017-11_12.csv.zst", 3},
		{"edgar-2017-06-30.access.log.zst", 10},
		{"dns-2018-03-24.access.jsonl.zst", 10},
	} {
		for _, each := range []bool{true, false} {
			t.Run(fmt.Sprint(c.trace, "/each=", each), func(t *testing.T) {
				checkTraceOverlap(t, testenv.SharedData(t, c.trace), each, c.n)
			})
		}
	}
}

func checkTraceOverlap(t *testing.T, path string, each bool, n int64) {
	w := newWatchOverlap(each, n, 10*time.Second, 5*time.Second)
	requests, hot := 0, 0
	for r, err := range reference.Trace(path) {
		if err != nil {
			t.Fatal(err)
		}
		var params []string
		for _, key := range reference.Keys("each", r.Method, r.Target) {
			if at := strings.LastIndexByte(key, '?'); at >= 0 && len(key)-at < 300 && len(params) < 8 {
				params = append(params, key[at+1:])
			}
		}
		at := time.Unix(0, r.At).UTC()
		if requests == 0 {
			w.now = at.Truncate(pace.Flush)
			w.Advance(w.now)
			w.first = w.window.Index(w.now) + 1
		}
		for panes := 0; !at.Before(w.now.Add(pace.Flush)); panes++ {
			if panes > 400 { // all is over
				w.pass(at.Truncate(pace.Flush).Sub(w.now))
				break
			}
			if wrong := w.endPane(); len(wrong) > 0 {
				t.Fatalf("at %v, listed: %s\n%s", w.now, w.listing(), strings.Join(wrong, "\n"))
			}
		}
		if len(params) > 0 {
			w.requests(1, params...)
		}
		if requests++; requests == 20_000 {
			break
		}
	}
	for _, change := range w.out.changes {
		hot += len(change.Hot)
	}
	if hot == 0 {
		t.Error("nothing was hot")
	}
}
