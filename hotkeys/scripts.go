package hotkeys

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/common.lua
	commonLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/adopt.lua
	adoptLua string
	//go:embed lua/lease.lua
	leaseLua string
	//go:embed lua/change.lua
	changeLua string
	//go:embed lua/rewrite.lua
	rewriteLua string
	//go:embed lua/renew.lua
	renewLua string
	//go:embed lua/prune.lua
	pruneLua string
	//go:embed lua/trim.lua
	trimLua string
)

// The scripts answer a list of strings: a status (see the constants), then for
// statusOK the version now in force, then what the script adds.
var (
	claimScript   = newScript(claimLua)
	adoptScript   = newScript(adoptLua)
	leaseScript   = newScript(leaseLua)
	changeScript  = newScript(changeLua)
	rewriteScript = newScript(rewriteLua)
	renewScript   = newScript(renewLua)
	pruneScript   = newScript(pruneLua)
	trimScript    = newScript(trimLua)
)

const (
	statusOK      = "ok"
	statusFenced  = "fenced"  // another process took the owner
	statusStandby = "standby" // another process holds the owner; for how many milliseconds at least
	statusLost    = "lost"    // Redis lost state: it forgot our claim
	statusBack    = "back"    // Redis lost state: the version is missing, lower, or of another run
	statusGone    = "gone"    // an entry of ours is not in the set
	statusSchema  = "schema"  // a layout that this program does not know
)

func newScript(body string) *redis.Script { return redis.NewScript(commonLua + "\n" + body) }
