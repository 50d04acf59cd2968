package aggregator

// Bounds of an aggregator's memory, in bytes.
const (
	// MinMemory is the least that windows can work in.
	MinMemory     = 1 << 20
	DefaultMemory = 64 << 20
	// accountsPart is the part of the memory that the accounts of keys have: the eighth.
	accountsPart = 8
)

// SplitMemory divides an aggregator's memory, in bytes, between its windows and the
// accounts of keys, which replace lost counts.
func SplitMemory(bytes int64) (windows, accounts int64) {
	return bytes - bytes/accountsPart, bytes / accountsPart
}
