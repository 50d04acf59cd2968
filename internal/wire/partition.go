package wire

// Partition returns the partition, out of n, of a key. It applies the rule of Kafka's own
// producer in Java, and of compatible producers, to the key: the low 31 bits of its murmur2
// (org.apache.kafka.common.utils.Utils). So a key has one partition, whichever program counted
// it.
func Partition(key []byte, n int) int32 {
	return int32(murmur2(key)&0x7fffffff) % int32(n)
}

// murmur2 returns Austin Appleby's MurmurHash2 with Kafka's seed.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		h = h*m ^ k*m
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
