package hotkeys

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

var (
	//go:embed lua/snapshot_save.lua
	saveLua string
	//go:embed lua/snapshot_load.lua
	loadLua string

	saveScript = redis.NewScript(saveLua)
	loadScript = redis.NewScript(loadLua)
)

// maxSnapshot bounds the result of LoadSnapshot, in bytes.
const maxSnapshot = 1 << 20

// errNotHolder is the error of [Publisher.SaveSnapshot] if another process holds the owner.
var errNotHolder = errors.New("another process holds the owner")

// SaveSnapshot saves the state that the publishing process needs after a restart. It replaces the
// last snapshot, and Redis keeps it for the duration keep. Redis refuses it unless this process
// holds the owner; it compares only the holder's name, since no other process has it. The
// deadline is that of ctx. SaveSnapshot does not use the goroutine of [Publisher.Run], which a
// slow call would delay.
func (p *Publisher) SaveSnapshot(ctx context.Context, data []byte, keep time.Duration) (err error) {
	defer wrapError(&err, "snapshot")
	saved, err := saveScript.Run(ctx, p.client, []string{p.layout.Owners, snapshotKey(p.layout, p.cfg.Owner)}, p.cfg.Owner, p.holder, data, keep.Milliseconds()).Int()
	if err != nil {
		return err
	}
	if saved == 0 {
		return errNotHolder
	}
	return nil
}

// LoadSnapshot returns the snapshot of the process that held the owner last, or nil if there is
// none. The deadline is that of ctx.
func (p *Publisher) LoadSnapshot(ctx context.Context) (_ []byte, err error) {
	defer wrapError(&err, "snapshot")
	data, err := loadScript.Run(ctx, p.client, []string{snapshotKey(p.layout, p.cfg.Owner)}, maxSnapshot).Text()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return []byte(data), err
}

// snapshotKey returns the key of an owner's snapshot.
func snapshotKey(l published.Layout, owner string) string { return l.Snapshots + owner }
