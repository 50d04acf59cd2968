package base

import "time"

// FlushInterval is the time between two flushes of counts, and the narrowest pane of a window.
// Collectors and aggregators must agree on it.
const FlushInterval = 100 * time.Millisecond
