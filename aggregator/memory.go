package aggregator

// Bounds of an aggregator's memory, in bytes.
const (
	// MinMemory is the smallest memory that windows can work with.
	MinMemory     = 1 << 20
	DefaultMemory = 64 << 20
	// The accounts of keys have one accountsPart-th of the memory.
	accountsPart = 8
)

// SplitMemory divides the memory of an aggregator, in bytes, between its windows and the
// accounts of keys, by which lost counts are recovered.
func SplitMemory(bytes int64) (windows, accounts int64) {
	return bytes - bytes/accountsPart, bytes / accountsPart
}
