package hotkeys

import (
	_ "embed"
	"strings"

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
// statusOK the version now in force, then what the script adds, and at the end what
// a [report] is made of.
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
	statusFenced  = "fenced"  // another process took the owner, without a lease: as standby
	statusStandby = "standby" // another process holds the owner: for how many milliseconds at least, its epoch, its name
	statusLost    = "lost"    // Redis lost state: it forgot our claim
	statusBack    = "back"    // Redis lost state: the version is missing, lower, or of another run
	statusGone    = "gone"    // an entry of ours is not in the set
	statusSchema  = "schema"  // a layout that this program does not know
)

func newScript(body string) *redis.Script {
	return redis.NewScript(commonLua + "\nlocal function main()\n" + body + "\nend\nreturn sealed(main())")
}

// report is what each answer of a script ends with.
type report struct {
	healed  []string // keys that held what is not ours, and were put right; see foreignKeys
	refused string   // what Redis refused that the set can do without; empty: nothing
	untidy  bool     // there are entries of nobody's, or parts of entries
}

// cutReport takes the report off an answer.
func cutReport(answer []string) ([]string, report, bool) {
	n := len(answer) - 3
	if n < 1 {
		return nil, report{}, false
	}
	r := report{refused: answer[n+1], untidy: answer[n+2] != ""}
	if answer[n] != "" {
		r.healed = strings.Split(answer[n], ",")
	}
	return answer[:n], r, true
}
