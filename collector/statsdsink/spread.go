package statsdsink

import "fmt"

// Spread is how counts are spread over several addresses.
type Spread int

const (
	// SpreadHash sends each key to one address, so that several aggregators share
	// the work: which one, the key and the addresses tell, the same on every
	// instance, whatever the order of the list. The addresses must be spelled
	// alike everywhere. A rule whose keys must all be counted in one place
	// ([hotparam.Rule.Whole]) has one address for all of them. Another address
	// takes over 1/n of the keys, and the rest stay where they are.
	//
	// There is no second home: when an aggregator dies, the limits of its keys
	// fade with what it had published, and these keys are found again when it is
	// back. Each aggregator publishes under an owner of its own.
	SpreadHash Spread = iota
	// SpreadAll sends every packet to every address: each aggregator counts all,
	// one publishes and another takes over when it dies. It costs as much of the
	// network, and of each aggregator, as there are addresses.
	SpreadAll
)

// ParseSpread reads "hash" or "all"; empty is hash.
func ParseSpread(s string) (Spread, error) {
	switch s {
	case "hash", "":
		return SpreadHash, nil
	case "all":
		return SpreadAll, nil
	}
	return 0, fmt.Errorf("spread %q: want hash or all", s)
}

// String is the spread's name in settings.
func (s Spread) String() string {
	switch s {
	case SpreadHash:
		return "hash"
	case SpreadAll:
		return "all"
	}
	return fmt.Sprintf("spread(%d)", int(s))
}
