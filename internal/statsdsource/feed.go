package statsdsource

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
)

// feed receives the counts of a reader. It is an [aggregator.Feed].
type feed interface {
	decode.PacketHandler
	Begin()
	End(arrived, now time.Time, behind bool)
}
