package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
)

// snapshots keeps a source's snapshots in Redis.
type snapshots struct{ *hotkeys.Publisher }

// Save implements [statsdsource.Snapshots].
func (s snapshots) Save(ctx context.Context, data []byte, keep time.Duration) error {
	return s.SaveSnapshot(ctx, data, keep)
}

// Load implements [statsdsource.Snapshots].
func (s snapshots) Load(ctx context.Context) ([]byte, error) { return s.LoadSnapshot(ctx) }

// fileSnapshots keeps a source's snapshots in a file of this machine.
type fileSnapshots struct {
	path string
	*hotkeys.Publisher
}

// Save implements [statsdsource.Snapshots]. A reader finds either the complete snapshot or the
// previous one. The expiry is not needed here, since a snapshot contains its own time.
func (f fileSnapshots) Save(_ context.Context, data []byte, _ time.Duration) error {
	fresh := f.path + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, f.path)
}

// Load implements [statsdsource.Snapshots].
func (f fileSnapshots) Load(context.Context) ([]byte, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
