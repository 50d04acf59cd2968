// Package wiretest signs packets for tests according to docs/PRODUCERS.md, like a producer in
// another language. It shares no code with the product.
package wiretest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Sign returns a packet signed with key. fields are those of its meta line, "i:a,e:ff,s:2,…", and
// lines are its other lines.
func Sign(key []byte, fields, lines string) string {
	meta := fmt.Sprintf("hotparam.meta:1|c|#v:1,%s,m:%04x.", fields, len(lines))
	h := hmac.New(sha256.New, key)
	h.Write([]byte(meta + lines))
	packet := meta + hex.EncodeToString(h.Sum(nil))[:32]
	if lines != "" {
		packet += "\n" + lines
	}
	return packet
}
