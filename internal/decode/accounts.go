package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/internal/wire"
)

// accounts are the sums and the accounts of one sender. A packet states the sums of the counts
// in all packets before it, in lines with an account (booked) and without one (loose). The
// increase between two packets shows how many counts the missing packets in between held. An
// account, the running total of one key, then shows how many of those were the key's. The
// senders' lock guards accounts.
type accounts struct {
	life  uint64    // incarnation of the sender
	sums  wire.Sums // sums stated by the next packet if no packet is missing
	seq   uint64    // sequence of the newest packet
	start time.Time // start of its flush
	began uint64    // lines of packets before this sequence are not booked; their accounts were forgotten
	first uint64    // each packet from this one on has arrived or is in a gap
	since int64     // start of the flush of the first packet, in ns since the Unix epoch by the sender's clock

	opening     *opening         // nil once earlier packets no longer matter
	resumed     bool             // whether the state is the previous process's and the sender has sent nothing since
	resumedAt   uint64           // newest packet that the previous process is known to have counted in full
	owedSince   time.Time        // earliest time of the counts that were owed in the previous process
	carriedOver snapshot.Carried // part of the restart's gap from before the restart

	opened      uint64 // accounts up to this number may be older than this state
	newest      uint64 // newest account number
	keys        map[accountKey]*keyAccount
	owed        uint64  // upper bound of the booked counts that are missing
	pruned      openGap // newest gap whose counts are no longer owed
	gaps        []openGap
	heals       [2]heals // current and previous interval, for packets that arrive late
	rules       ruleSums
	buckets     *bucketSums // nil if the sender states none, or for other rules
	statement   uint64      // number of the bucket statement that the newest packet belongs to
	statementOf uint64      // sequence of that packet
	swept       time.Time
}

// lastOpened returns the newest account that the sender is known to have opened.
func (a *accounts) lastOpened() uint64 { return max(a.opened, a.sums.Opened, a.newest) }

type accountKey struct {
	hash uint64
	rule int32
}

// keyAccount records the counted part of an account: from low to high.
//
// An account shows a gap's loss of its key only if it was followed from before the gap. Counts
// below low, and counts that contradict the sender's sums, can belong to any gap before since.
type keyAccount struct {
	number, low, high uint64
	seq               uint64 // newest packet with the account
	since             uint64 // all counts from this packet on are known; 0 means all counts of the account
	heard             int64  // start of the counts of packet seq, in ns since the Unix epoch
}

// heal is a healed part of an account, and the time range in which it was counted.
type heal struct {
	low, high uint64
	from, to  time.Time
}

// heals are the healed counts of an interval, by account number.
type heals struct {
	byAccount map[uint64][]heal
	began     time.Time
}

const (
	// accountSize is the approximate memory of an account in bytes. A key whose account is not
	// kept is bounded by everything that is missing.
	accountSize = 128
	// DefaultAccountsMemory is the default memory of accounts in bytes; see
	// [Decoder.LimitAccounts].
	DefaultAccountsMemory = 8 << 20
	// keptHeals is the number of a sender's accounts whose heals are known for each interval of
	// length healTime. Counts that arrive later than that are not placed, since windows do not
	// wait for them.
	keptHeals = 4096
	healTime  = DefaultGrace
	// maxOpenGaps bounds the gaps of a sender that may become smaller.
	maxOpenGaps = 256
	// idleAccount is the time for which an account is kept after its last line.
	idleAccount = time.Minute
)

// bookedLine is a line with an account.
type bookedLine struct {
	Count
	wire.Account
	index int // index among the packet's counts, or -1
}

// packetSums are the sums of a packet, as in [wire.Sums].
type packetSums struct {
	booked, loose, heldBack uint64
	byRule                  placeCounts
	byBucket                []looseCount
}

// openGap is a gap that may still become smaller.
type openGap struct {
	Gap
	from, to     uint64 // sequences
	opened       uint64 // number of opened accounts when the packet after the gap was made
	openedBefore uint64 // number of opened accounts when the packet before the gap was made
	first, last  uint64 // range of statements by bucket that its packets may belong to
	lack         *lack  // loss by rule that includes the gap; nil if unknown
	unheard      int64  // counts on accounts in those of its packets that have not arrived
	owed         uint64 // upper bound of the missing counts on accounts in this gap and later ones
}
