// Package window counts the keys of a rule by pane, in bounded memory, and bounds the counts
// that it cannot attribute to a key.
//
// Every key is counted exactly until the memory is full. From then on keys share cells, which
// bound the counts that a key may have in addition to its own. So for each key, and each window
// that ends with a kept pane,
//
//	low ≤ the counts of all instances ≤ high
//
// where high is [published.Unknown] if no bound of the lost counts is known.
//
// The files, in the order of a count:
//
//   - fetch.go reads memory ahead · add.go adds a count to a key's entry · estimate.go keeps
//     the guessed part of sampled counts
//   - roll.go begins a pane · late.go counts of panes before the newest · names.go texts of keys
//     near a threshold · room.go which entry is evicted · cells.go keys without an entry
//   - sums.go an entry's panes, added up · window.go index.go arena.go unit.go where
//     it is kept
//   - bounds.go the low and high count of a window · missing.go healed.go shortfall.go joint.go
//     merge.go lost counts
//   - listed.go the keys that count most in a few panes, and the rest
//   - groups.go totals.go all keys of a group, or of a route, together ·
//     history.go the windows before the current one
//   - resumed.go resumedgroups.go the counts of another process before
//   - resize.go another budget, or a beginning, when rules change
//
// The words of lost counts, in [decode.Gap], [Missing] and [Window]:
//
//   - A gap is a time in which packets of a sender are missing. Its sums show how many counts.
//   - A booked count is of a line with an account, the running total of one key, so a later line
//     of the key makes it known. A loose count is of a line without: nothing shows its key.
//   - A healed count is a booked one that the account has made known. Its time is only known to be
//     in a range. If it is placed, it is counted at the earliest time of the range (Heal);
//     otherwise it is not counted (RecordLack). Of a window, the healed counts before are counted
//     earlier and may belong to it, and those later are counted in it and may belong after it.
//   - noLoose and noBooked mark gaps that lack no such counts of a key (ExcludeKey).
//   - A joint bound limits the sum over several gaps, by rule or by bucket of keys: the sender
//     stated its sums only before the first and after the last of them.
//   - Small counts are held back by collectors, which send them later. Window.heldBack bounds those
//     of a key now. A gap's heldBack is the part of the reports of them, by group, that was lost.
//   - Hidden counts were dropped by collectors, and will never arrive (Conceal).
//   - A window lacks a count that belongs to it and is not counted in it, for any of these reasons.
//     A shortfall bounds what a window lacks of all keys together.
//
// Nothing here is safe for concurrent use.
package window
