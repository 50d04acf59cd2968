// Package window counts the keys of a rule by pane, in bounded memory, and bounds what it
// cannot count.
//
// Every key is counted exactly until the memory is full. From then on keys share cells, and
// what a key may have besides its own count is known as a bound. So for each key, and each
// window that ends with a pane that is kept,
//
//	low ≤ what was counted by all instances ≤ high
//
// where high is [rules.Unknown] when nothing bounds what was lost.
//
// The files, in the order of a count:
//
//   - fetch.go its memory is read ahead · add.go a count is added to a key's entry ·
//     estimate.go what was not seen of it · take.go a count that is of another time is taken
//     back
//   - entry.go counts of panes before the newest · names.go texts of keys near a threshold ·
//     room.go which entry is evicted · cells.go keys without an entry
//   - sums.go blocks.go an entry's panes, added up · window.go index.go arena.go unit.go where
//     it is kept
//   - bounds.go the low and high count of a window · missing.go healed.go shortfall.go joint.go
//     merge.go what was lost on the way
//   - groups.go totals.go repeats.go all keys of a group, or of a route, together ·
//     history.go the windows before the present one
//   - resumed.go resumedgroups.go resumedhistory.go what another process counted before
//   - resize.go another budget, or a beginning, when rules change
//
// Nothing here is safe for concurrent use.
package window
