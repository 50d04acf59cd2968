package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// accounts are the sums and accounts of one sender. The sums of what it had sent before a
// packet show how much missing packets held, and accounts show whose counts these were. The
// senders' lock guards them.
type accounts struct {
	life  uint64    // the incarnation
	sums  wire.Sums // as they have to be before the next packet
	seq   uint64    // the newest
	start time.Time // of its flush
	began uint64    // what arrived before is forgotten
	first uint64    // from this on each packet has come or is in a gap
	since int64     // the start of the flush of the first one, in ns since the Unix epoch by the sender's clock

	opening     *opening         // nil: what came before it matters no more
	resumed     bool             // it is of the process before, and nothing was heard of the sender yet
	resumedAt   uint64           // the newest packet that is known to be counted as a whole by it
	owedSince   time.Time        // of when counts are owed from before that
	carriedOver snapshot.Carried // what the gap of the restart has from before it

	opened      uint64 // accounts up to this one may be older than this state
	newest      uint64 // account
	keys        map[accountKey]*keyAccount
	owed        uint64  // counts on accounts that are missing, or more
	pruned      openGap // the newest of those whose counts are owed no more
	gaps        []openGap
	heals       [2]heals // the newest and those before, for packets that arrive late
	rules       ruleSums
	buckets     *bucketSums // nil: the sender states none, or of other rules
	statement   uint64      // of bucket sums that the newest packet is of,
	statementOf uint64      // and the sequence of that packet
	swept       time.Time
}

// lastOpened returns the newest account that the sender is known to have opened.
func (a *accounts) lastOpened() uint64 { return max(a.opened, a.sums.Opened, a.newest) }

type accountKey struct {
	hash uint64
	rule int32
}

// keyAccount is what has been counted of an account: from low to high.
//
// An account shows what a gap lacks of its key only if it was followed from before the gap: counts
// below low, and those that contradict the sender's sums, can be of any gap before since.
type keyAccount struct {
	number, low, high uint64
	seq               uint64 // of the newest packet with it
	since             uint64 // all counts from this packet on are known; 0 means all that it has
	heard             int64  // the start of that packet's counts, in ns since the Unix epoch
}

// heal is a part of an account that was made up for, and where it was counted.
type heal struct {
	low, high uint64
	from, to  time.Time
}

// heals are the healed counts of some time, by account number.
type heals struct {
	of    map[uint64][]heal
	began time.Time
}

const (
	// accountSize is about how many bytes an account takes. A key whose account is not kept
	// is bounded by all that is missing.
	accountSize = 128
	// DefaultAccountsMemory is the default memory of accounts in bytes; see
	// [Decoder.LimitAccounts].
	DefaultAccountsMemory = 8 << 20
	// keptHeals is of how many accounts of a sender the heals of some time are known, and
	// healTime that time: what comes later than windows wait for is placed nowhere.
	keptHeals = 4096
	healTime  = DefaultGrace
	// maxOpenGaps bounds those of a sender that may become smaller.
	maxOpenGaps = 256
	// idleAccount is how long an account is kept after its last line.
	idleAccount = time.Minute
)

// entry is a line with an account.
type entry struct {
	Count
	wire.Account
	at int // its place among the packet's counts, -1: it has none
}

// packetSums are the sums of a packet, as in [wire.Sums].
type packetSums struct {
	booked, loose, heldBack uint64
	byRule                  parts
	byBucket                []looseCount
}

// openGap is a gap that may become smaller still.
type openGap struct {
	Gap
	from, to     uint64 // sequences
	opened       uint64 // accounts, when the next packet was made
	openedBefore uint64 // and when the one before was
	first, last  uint64 // statements by bucket that its packets can be of
	lack         *lack  // by rule, that it is in; nil if that is not known
	unheard      int64  // counts on accounts in those of its packets that have not come
	owed         uint64 // counts on accounts that are missing in it and in the gaps after it, or more
}
