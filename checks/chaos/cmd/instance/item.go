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

// itemTime is how long a run of serveItem takes, so that requests join it and changes come meanwhile.
const itemTime = 30 * time.Millisecond

var itemRuns atomic.Int64

// serveItem answers with what it has seen of the request, and with its run.
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
