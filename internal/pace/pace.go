// Package pace is how often counts leave a process, which collectors, aggregators and the
// panes of windows agree on.
package pace

import "time"

// Flush is the time between two flushes of counts, and the narrowest pane of a window.
const Flush = 100 * time.Millisecond
