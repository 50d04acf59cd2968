// Package hotset holds the hot keys of one process in an immutable snapshot. Requests read it
// with one atomic load, and each change replaces it as a whole.
//
//	hotkeys.Watcher ─► Writer ─► Set ─► snapshot ─► Set.Lookup ◄─ request path
//	collector ─► Mark, Unmark ───┘
//
// A [Set] has two sources: the keys that are published for all instances ([Writer]), and keys
// that only this process has found hot ([Set.Mark]). A mark has no effect while its key is
// published.
//
// Files: set.go has the set and its changes, pins.go the keys that operators pin, and
// lookup.go the snapshot in which requests look up keys. cooled.go keeps the payloads of keys that have cooled and may become hot again.
package hotset
