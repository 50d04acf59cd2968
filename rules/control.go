package rules

import "time"

// ControlAction is what an operator does to a key for some time.
type ControlAction string

// Actions of a [Control], in the order in which they take precedence.
const (
	// ControlBlock refuses each request that makes the key.
	ControlBlock ControlAction = "block"
	// ControlAllow counts the requests that make the key, and lifts the limit of the key's
	// rule from them.
	ControlAllow ControlAction = "allow"
	// ControlPin holds the key to its rule's limit as if it was hot.
	ControlPin ControlAction = "pin"
)

// ControlHold is what was released of a key without a control that instances held; see
// hotkeys.Watcher.SetHold. No operator sets it.
const ControlHold ControlAction = "hold"

// Valid reports whether a is one of the actions that operators set.
func (a ControlAction) Valid() bool {
	return a == ControlBlock || a == ControlAllow || a == ControlPin
}

// Control is what an operator has said about one key. It takes precedence over the key's
// exceptions in the rules file, and ends by itself. A key has one control at most.
type Control struct {
	Key
	Action ControlAction
	// Since is when it was set, and Until when it ends.
	Since, Until time.Time
	// Why is the operator's reason, or empty.
	Why string
	// By is the user of Redis who set it, as Redis names them, or empty if Redis does not say.
	By string
	// Claimed is who the operator's program says they are, such as "ann@laptop". Nothing
	// proves it.
	Claimed string
}

// Bounds of controls.
const (
	// MaxControls is how many keys of a namespace have a control at a time.
	MaxControls = 1000
	// MaxControlTime is how long a control lasts at most.
	MaxControlTime = 24 * time.Hour
	// MaxControlWhy bounds the reason of a Control, in bytes.
	MaxControlWhy = 256
	// MaxControlBy bounds the author of a Control, in bytes.
	MaxControlBy = 128
)
