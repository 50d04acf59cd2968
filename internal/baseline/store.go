package baseline

import "context"

// Store keeps hours for the processes that come later. Its values are those of [Hour.Append].
// What it holds ends some time after [Kept] hours.
type Store interface {
	// Read returns what is kept of some hours: by number, the value of each part.
	Read(ctx context.Context, hours []int64) (map[int64]map[string][]byte, error)
	// Write keeps what a part counted in an hour, in place of what it had before.
	Write(ctx context.Context, hour int64, part string, value []byte) error
}
