package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/clock"
)

// itemTime is the length of a run of serveItem. Requests join it, and changes overtake it.
const itemTime = 30 * time.Millisecond

var itemRuns atomic.Int64

// serveItem writes the request that it sees, and its run.
func serveItem(w http.ResponseWriter, r *http.Request) {
	began := clock.Now()
	time.Sleep(itemTime)
	user := r.Header.Get("Authorization")
	if c, err := r.Cookie("user"); err == nil {
		user = c.Value
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // the client may have left
		Target, Vary, User string
		Run                string
		Began, Ended       time.Duration
	}{
		r.URL.RequestURI(), r.Header.Get("Accept-Language"), user,
		fmt.Sprintf("%d-%d", os.Getpid(), itemRuns.Add(1)), began, clock.Now(),
	})
}
