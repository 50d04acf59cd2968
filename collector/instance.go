package collector

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/hotparam/hotparam/wire"
)

// NewIncarnation returns a random number that distinguishes this life of an instance
// from its others. A sink states it in what it sends.
func NewIncarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// DefaultInstance returns the name by which sinks identify a process that was given no
// name: host name and process id.
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
