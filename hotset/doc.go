// Package hotset holds the keys that are hot as one process sees them: an immutable
// snapshot that requests read with one atomic load, and that is replaced as a whole.
//
//	hotkeys.Watcher ─► Writer ─► Set ─► snapshot ─► Set.Lookup ◄─ request path
//	collector ─► Mark, Unmark ───┘
//
// Two sources fill a [Set]: what is published for all instances ([Writer]), and what
// this process alone has found hot ([Set.Mark]). While a key is published its mark has
// no effect.
//
// set.go has the set and what changes it, cooled.go the payloads of keys that have
// cooled and may come back, table.go the snapshot.
package hotset
