package limiter

import (
	"bufio"
	"bytes"
)

// AppendFrame appends a frame of a snapshot, whose first byte is its kind.
func AppendFrame(b, frame []byte) []byte {
	if len(frame) == 0 {
		return b
	}
	buffer := bytes.NewBuffer(b)
	s := &snapshotWriter{w: bufio.NewWriter(buffer)}
	s.writeFrame(frame[0], frame[1:])
	_ = s.w.Flush()
	return buffer.Bytes()
}
