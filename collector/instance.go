package collector

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/hotparam/hotparam/internal/wire"
)

// NewIncarnation returns a random number. Sinks send it so that receivers can distinguish a
// process from an earlier one with the same name.
func NewIncarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// DefaultInstance returns the default name of an instance: host name and process id.
func DefaultInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wire.ValidInstance(string(r)) {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.40s-%d", clean, os.Getpid())
}
