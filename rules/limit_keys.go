package rules

import "fmt"

// Bounds of [Rules.LimitKeys].
const (
	DefaultLimitKeys = 1 << 16
	MaxLimitKeys     = 1 << 24
)

// validateLimitKeys reports a number of keys that is out of bounds. Zero is valid and means the
// default.
func (r *Rules) validateLimitKeys() (bad FieldErrors) {
	if r.LimitKeys < 0 || r.LimitKeys > MaxLimitKeys {
		bad.add("max_keys", quoted(fmt.Sprint(r.LimitKeys)), "for example 65536, the default; each key in use takes about 100 bytes in each limit",
			"want 1 to %d", MaxLimitKeys).needs("max_keys")
	}
	return bad
}
