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

// Each script returns a list of strings: a status (see the constants), after statusOK the version
// now in force and the script's own results, and at the end the fields of a [scriptReport].
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
	statusFenced  = "fenced"  // another process took the owner, without a lease; results as for statusStandby
	statusStandby = "standby" // another process holds the owner; results: the least time in milliseconds that it will, its epoch, its name
	statusLost    = "lost"    // Redis lost state: our claim is missing
	statusBack    = "back"    // Redis lost state: the version is missing, lower, or of another run
	statusGone    = "gone"    // one of our entries is missing
	statusSchema  = "schema"  // the layout is of another version
)

func newScript(body string) *redis.Script {
	return redis.NewScript(commonLua + "\nlocal function main()\n" + body + "\nend\nreturn sealed(main())")
}

// scriptReport is the end of each script's answer.
type scriptReport struct {
	healed  []string // keys that held foreign values and were repaired; see healable
	refused string   // errors of the stream and the channel, which the set does not need, or empty
	untidy  bool     // there are entries without an owner, or incomplete entries
}

// cutReport splits an answer into the results and the report. ok is false if there is no
// report.
func cutReport(answer []string) (results []string, _ scriptReport, ok bool) {
	n := len(answer) - 3
	if n < 1 {
		return nil, scriptReport{}, false
	}
	r := scriptReport{refused: answer[n+1], untidy: answer[n+2] != ""}
	if answer[n] != "" {
		r.healed = strings.Split(answer[n], ",")
	}
	return answer[:n], r, true
}
