package chaos

import (
	"slices"
	"time"
)

// excuse is a set of failures that a fault allows.
type excuse uint16

const (
	mayMissHotKeys   excuse = 1 << iota // hot keys may be unlimited everywhere
	mayTroubleKafka                     // clients of Kafka may be stuck, also after the fault
	mayDecideLocally                    // instances may decide exact limits by their parts
	mayLoseGrants                       // Redis may forget the permits taken
	mayLoseWrites                       // what Redis forgets are its last writes alone
	mayMixGrants                        // answers of Redis may be those to other questions, or partly lost
	mayRestartEpochs                    // epochs may restart
	mayMissChanges                      // changes of answers in memory may not reach other instances
	mayNotAnswer                        // an aggregator may not answer
	// The instance of the effect may fail requests and leave hot keys unlimited, and may decide by
	// its part.
	mayFailRequests
	mayStartFresh // the instance of the effect restarts and does not know the others at first
)

// allButOne is the part of a limit that instances may take apart while one of them shares it.
const allButOne = float64(instances-1) / instances

// maxLag is the longest time by which a replica lags.
const maxLag = time.Second

// effect is what a fault excuses, from its beginning until a recovery after its end.
type effect struct {
	excuses    excuse
	unaffected []string // limits, named as in run.limitKeys, that mayDecideLocally and mayLoseGrants do not apply to
	instance   int      // for mayFailRequests, mayStartFresh and mayMissChanges of one
	alone      int      // number of instances that mayDecideLocally and mayMissChanges apply to; zero means all, at once
}

// has reports whether the effect has one of the excuses.
func (e *effect) has(some excuse) bool { return e.excuses&some != 0 }

// failsRequestsOf reports whether the instance may fail requests.
func (e *effect) failsRequestsOf(instance int) bool {
	return e.has(mayFailRequests) && e.instance == instance
}

// affects reports whether mayDecideLocally and mayLoseGrants apply to a limit.
func (e *effect) affects(limit string) bool { return !slices.Contains(e.unaffected, limit) }
