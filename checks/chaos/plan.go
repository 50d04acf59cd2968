package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plannedFault is one fault of a run, or two at the same time.
type plannedFault struct {
	start    time.Duration // time since the beginning of the events
	duration time.Duration
	calm     time.Duration // time without faults after it
	parts    []*eventKind
	target   int    // index of the instance, for faults of one
	seed     uint64 // seed of all other choices
}

func (e *plannedFault) String() string {
	text := fmt.Sprintf("%7.2fs  for %-6v", e.start.Seconds(), e.duration.Round(10*time.Millisecond))
	for i, k := range e.parts {
		if i > 0 {
			text += " +"
		}
		text += " " + k.name
	}
	return text + fmt.Sprintf(" (instance %d)", e.target+1)
}

// calmLeast is the time needed to see that everything works again: three seconds for the
// recovery, and four of observation.
const calmLeast = 7500 * time.Millisecond

// plan returns the events of a run. It is a pure function of c.
func plan(c *Config) (events []plannedFault) {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	if len(c.Only) > 0 {
		return planOnly(c, rng)
	}
	kinds := c.kinds()
	bag := shuffled(rng, kinds)
	for start := time.Duration(0); start < c.Duration; {
		if len(bag) == 0 {
			bag = shuffled(rng, kinds) // each kind occurs as often as its weight
		}
		e := newEvent(rng, start)
		e.parts, bag = append(e.parts, bag[0]), bag[1:]
		if len(bag) > 0 && rng.IntN(4) == 0 && bag[0].exclusive != e.parts[0].exclusive {
			e.parts, bag = append(e.parts, bag[0]), bag[1:]
			if e.parts[1].exclusive == "rules" { // changed first and restored last, since a stopped instance cannot reload
				slices.Reverse(e.parts)
			}
		}
		e.chooseDuration(rng)
		events = append(events, e)
		start += e.duration + e.calm
	}
	return events
}

// planOnly returns the events that the Config names. They depend only on the seed and their
// names, not on the other kinds that exist.
func planOnly(c *Config, rng *rand.Rand) (events []plannedFault) {
	start := time.Duration(0)
	for _, name := range c.Only {
		k, _ := kindNamed(name)
		e := newEvent(rng, start)
		e.parts = []*eventKind{k}
		e.chooseDuration(rng)
		events = append(events, e)
		start += e.duration + e.calm
	}
	return events
}

func newEvent(rng *rand.Rand, start time.Duration) plannedFault {
	return plannedFault{start: start, target: rng.IntN(instances), seed: rng.Uint64(), calm: calmLeast + time.Duration(rng.IntN(2000))*time.Millisecond}
}

// chooseDuration chooses how long the event lasts.
func (e *plannedFault) chooseDuration(rng *rand.Rand) {
	for _, k := range e.parts {
		e.duration = max(e.duration, k.shortest+time.Duration(rng.Int64N(int64(k.longest-k.shortest)+1)))
	}
}

// isPossible reports whether the deployment has such events.
func (k *eventKind) isPossible(c *Config) bool {
	return k.deployment == "" || k.deployment == c.Redis || k.deployment == c.Counts
}

// kinds returns the kinds of the scenario that the deployment has.
func (c *Config) kinds() (some []*eventKind) {
	for i := range kinds {
		k := &kinds[i]
		if (c.Scenario == "all" || slices.Contains(k.scenarios, c.Scenario)) && k.isPossible(c) {
			some = append(some, k)
		}
	}
	return some
}

func shuffled(rng *rand.Rand, kinds []*eventKind) (bag []*eventKind) {
	for _, k := range kinds {
		for range k.weight {
			bag = append(bag, k)
		}
	}
	rng.Shuffle(len(bag), func(i, j int) { bag[i], bag[j] = bag[j], bag[i] })
	return bag
}
