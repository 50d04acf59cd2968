// Package hotset holds the hot keys of one process in an immutable snapshot, which
// requests read with one atomic load and which is replaced as a whole.
//
//	hotkeys.Watcher ─► Writer ─► Set ─► snapshot ─► Set.Lookup ◄─ request path
//	collector ─► Mark, Unmark ───┘
//
// A [Set] has two sources: the keys that are published for all instances ([Writer]), and
// those that only this process has found hot ([Set.Mark]). A mark has no effect while its
// key is published.
//
// set.go has the set and its changes, pins.go the keys that operators pin, cooled.go the payloads of keys that have cooled and
// may come back, table.go the snapshot.
package hotset
