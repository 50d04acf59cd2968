// Package window counts the keys of a rule by pane, in bounded memory, and bounds the counts
// that it cannot attribute to a key.
//
// Every key is counted exactly until the memory is full. From then on keys share cells, which
// bound the counts that a key may have in addition to its own. So for each key, and each window
// that ends with a kept pane,
//
//	low ≤ the counts of all instances ≤ high
//
// where high is [rules.Unknown] if no bound of the lost counts is known.
//
// The files, in the order of a count:
//
//   - fetch.go reads memory ahead · add.go adds a count to a key's entry · estimate.go keeps
//     the estimated part of it
//   - entry.go counts of panes before the newest · names.go texts of keys near a threshold ·
//     room.go which entry is evicted · cells.go keys without an entry
//   - sums.go an entry's panes, added up · window.go index.go arena.go unit.go where
//     it is kept
//   - bounds.go the low and high count of a window · missing.go healed.go shortfall.go joint.go
//     merge.go lost counts
//   - groups.go totals.go all keys of a group, or of a route, together ·
//     history.go the windows before the current one
//   - resumed.go resumedgroups.go the counts of another process before
//   - resize.go another budget, or a beginning, when rules change
//
// Nothing here is safe for concurrent use.
package window
