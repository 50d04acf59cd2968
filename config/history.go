package config

import "time"

// History holds the settings of what the aggregator keeps of the past, section "history:" of its
// settings.
type History struct {
	// On is set if the file has the section.
	On bool
	// Redis holds the history. An empty URL means the aggregator's Redis.
	Redis Redis
	// Keep is how long amounts are kept.
	Keep time.Duration
	// Memory is the number of bytes that they may take in Redis.
	Memory int64
}

func (h *History) settings() settings {
	redis := h.Redis.value()
	redis.inner = nil // its fields have no defaults here: without a URL it is the aggregator's
	return settings{
		{"redis", redis, "", "Where the history is kept. Default: aggregator.redis"},
		{"keep", span(&h.Keep, "7d", time.Hour, 31*24*time.Hour), "7d", "How long it is kept"},
		{"memory", size(&h.Memory, "64MiB holds a week of 1,000 keys", minMemory), "64MiB", "Memory of the history in Redis; the finest of the oldest is dropped first"},
	}
}

// value returns the value of the section, which is on if the file has it.
func (h *History) value() fieldBinding {
	v := within(h, h.settings(), "for example history: {keep: 7d}")
	read := v.read
	v.read = func(d *decoder, n *fileNode, what string) {
		read(d, n, what)
		h.On = true
	}
	return v
}
