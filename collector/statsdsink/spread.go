package statsdsink

import "fmt"

// Spread selects which of several addresses get a key's counts.
type Spread int

const (
	// SpreadHash sends each key to one address, so that several aggregators share the
	// work. The choice depends on the key and the set of addresses, not on their order.
	// So it is the same on all instances if the addresses are spelled alike. All keys of
	// a rule that must be counted in one place ([rules.Rule.Whole]) go to one address.
	// When the n-th address is added, 1/n of the keys move to it, and no others move.
	//
	// If an aggregator fails, no other replaces it: the limits of its keys expire with its
	// entries, and it finds the keys again when it returns. Each aggregator publishes
	// under its own owner.
	SpreadHash Spread = iota
	// SpreadAll sends every packet to every address. Each aggregator counts all keys;
	// one publishes, and a standby takes over when it fails. Each aggregator does the work
	// of a single one, and the traffic is multiplied by the number of addresses.
	SpreadAll
)

// ParseSpread parses "hash" or "all". Empty means hash.
func ParseSpread(s string) (Spread, error) {
	switch s {
	case "hash", "":
		return SpreadHash, nil
	case "all":
		return SpreadAll, nil
	}
	return 0, fmt.Errorf("spread %q: want hash or all", s)
}

// String returns the spread's name in settings.
func (s Spread) String() string {
	switch s {
	case SpreadHash:
		return "hash"
	case SpreadAll:
		return "all"
	}
	return fmt.Sprintf("spread(%d)", int(s))
}
