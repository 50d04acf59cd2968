package base

import "time"

// FlushInterval is the time between two flushes of counts, and the narrowest pane of a window:
// what collectors and aggregators agree on.
const FlushInterval = 100 * time.Millisecond
