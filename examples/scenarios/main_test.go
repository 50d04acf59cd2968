package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func outcome(t *testing.T, rule string) (o Outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		handler, wait, err := guarded(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range scenarios {
			if scenarios[i].Rule == rule {
				o = scenarios[i].Run(ctx, handler)
			}
		}
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func TestWholeAPI(t *testing.T) {
	if o := outcome(t, "whole-api"); o.Served != 100 || o.Refused[http.StatusTooManyRequests] != 200 {
		t.Errorf("%+v, want 100 served, the burst, and 200 refused", o)
	}
}

// Two requests are served at once, two after 100 ms and two after 200 ms. Requests that would wait
// longer than 250 ms are refused then.
func TestSlowAPI(t *testing.T) {
	o := outcome(t, "slow-api")
	if o.Served != 6 || o.Waited != 4 || o.Refused[http.StatusServiceUnavailable] != 4 {
		t.Errorf("%+v, want 6 served, 4 of them later, and 4 refused", o)
	}
	if o.Longest != 3*reportTakes {
		t.Errorf("the longest took %v, want a wait for two others and the time itself", o.Longest)
	}
}

func TestCostlyParameter(t *testing.T) {
	if o := outcome(t, "costly-parameter"); o.Served != 15 || o.Refused[http.StatusTooManyRequests] != 5 {
		t.Errorf("%+v, want 10 served without the filter and 5 with it", o)
	}
}

// 160 requests come in two seconds: 144 for one value, and 16 for others. The value becomes hot after
// 50 requests and is then limited. All others are served.
func TestHotParameter(t *testing.T) {
	o := outcome(t, "hot-parameter")
	before, held := 50, 10+int(2*time.Second/time.Second)*10 // a burst, and the rate for at most the rest of two seconds
	if served := o.Served - 16; served < before || served > before+held {
		t.Errorf("%d of the hot value were served, want %d until it was hot and at most %d then", served, before, held)
	}
	if o.Served+o.Refused[http.StatusTooManyRequests] != 160 {
		t.Errorf("%+v, want every request to be answered", o)
	}
}
