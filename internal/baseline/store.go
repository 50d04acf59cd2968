package baseline

import "context"

// Store keeps hours for later processes. Its values are encoded by [Hour.Append]. They expire
// some time after [Kept] hours.
type Store interface {
	// Read returns the values of some hours: by number of the hour, the value of each part.
	Read(ctx context.Context, hours []int64) (map[int64]map[string][]byte, error)
	// Write stores the value of a part in an hour, and replaces the one before.
	Write(ctx context.Context, hour int64, part string, value []byte) error
}
