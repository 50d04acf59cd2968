// Package window counts the keys of a rule by pane, in bounded memory, and bounds what it
// cannot count.
//
// Every key is counted exactly until the memory is full. From then on keys share cells, and
// what a key may have besides its own count is known as a bound. So for each key, and each
// window that ends with a pane that is kept,
//
//	low ≤ what was counted by all instances ≤ high
//
// where high is [hotparam.Unknown] when nothing bounds what was lost.
//
// The files: window.go a rule's keys over the length of a window, room.go what makes room ·
// entry.go arena.go index.go one key · cells.go keys without an entry · names.go texts of
// those near a threshold · estimate.go of samples · bounds.go what is asked of a window ·
// missing.go healed.go what was lost on the way · groups.go totals.go repeats.go all keys of a
// group, or of a route, together · history.go the windows before the present one.
//
// Nothing here is safe for concurrent use.
package window
