package rules

import "time"

// ControlAction is the effect of an operator's control on a key.
type ControlAction string

// Actions of a [Control], in the order in which they take precedence.
const (
	// ControlBlock refuses each request that makes the key.
	ControlBlock ControlAction = "block"
	// ControlAllow counts the requests that make the key, and exempts them from the limit of the
	// key's rule.
	ControlAllow ControlAction = "allow"
	// ControlPin holds the key to its rule's limit as if it were hot.
	ControlPin ControlAction = "pin"
)

// ControlHold stands for a key without a control that instances held and an operator released;
// see hotkeys.Watcher.SetHold. No operator sets it.
const ControlHold ControlAction = "hold"

// Valid reports whether a is one of the actions that operators set.
func (a ControlAction) Valid() bool {
	return a == ControlBlock || a == ControlAllow || a == ControlPin
}

// Control is an operator's decision about one key. It takes precedence over the key's exceptions
// in the rules file, and expires. A key has one control at most.
type Control struct {
	Key
	Action ControlAction
	// Since is when the control was set, and Until when it ends.
	Since, Until time.Time
	// Why is the operator's reason, or empty.
	Why string
	// By is the Redis user who set it, or empty if Redis does not report one.
	By string
	// Claimed is the identity that the operator's program claims, such as "ann@laptop". Nothing
	// proves it.
	Claimed string
}

// Bounds of controls.
const (
	// MaxControls is the most keys of a namespace that have a control at a time.
	MaxControls = 1000
	// MaxControlTime is the longest duration of a control.
	MaxControlTime = 24 * time.Hour
	// MaxControlWhy bounds the reason of a Control, in bytes.
	MaxControlWhy = 256
	// MaxControlBy bounds the author of a Control, in bytes.
	MaxControlBy = 128
)
