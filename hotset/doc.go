// Package hotset holds the hot keys of one process in an immutable snapshot. Requests read it
// with one atomic load, and each change replaces it as a whole.
//
//	hotkeys.Watcher ─► Writer ─► Set ─► snapshot ─► Set.Lookup ◄─ request path
//	collector ─► Mark, Unmark ───┘
//
// A [Set] has three sources: the keys that are published for all instances ([Writer]), keys that
// only this process has found hot ([Set.Mark]), and keys that operators pin ([Set.SetPins]). A
// mark has no effect while its key is published, and a pin none while its key is published or marked.
//
// Files: set.go has the set and its changes, and lookup.go the snapshot in which requests look up
// keys. cooled.go keeps the payloads of keys that have cooled and may become hot again.
package hotset
