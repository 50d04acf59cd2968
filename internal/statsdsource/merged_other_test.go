//go:build !linux

package statsdsource

import "net"

// writeMerged sends packets one by one: here the system merges none.
func writeMerged(conn net.Conn, packets [][]byte) error {
	for _, p := range packets {
		if _, err := conn.Write(p); err != nil {
			return err
		}
	}
	return nil
}
