package interop

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// A program in another language can sign as instances do: packets and records.
func TestSigned(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	path := filepath.Join(t.TempDir(), "hotparam.key")
	testenv.WriteFile(t, path, key+"\nthe key before, which still verifies\n")
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	printed := statsdClients(t).run(t, example("signed.py"), "", conn.LocalAddr().String(), path, "phone", "café 7.5")
	buffer := make([]byte, 2048)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _, err := conn.ReadFrom(buffer)
	if err != nil {
		t.Fatal(err)
	}
	mac := wire.NewMAC([]byte(key))
	meta, lines, _ := strings.Cut(string(buffer[:n]), "\n")
	m, err := wire.ParseMeta([]byte(meta))
	if err != nil || m.Seq != 1 || time.Since(time.Unix(0, m.Sent)).Abs() > time.Minute {
		t.Errorf("%q is %+v, %v", meta, m, err)
	}
	if err := mac.Verify(buffer[:n]); err != nil {
		t.Errorf("%q: %v", buffer[:n], err)
	}
	if want := "shop.search-terms.hot_param.GET%20/search?q=phone:1|c\nshop.search-terms.hot_param.GET%20/search?q=caf%25C3%25A9%25207%2E5:1|c"; lines != want {
		t.Errorf("it counts\n%s, want\n%s", lines, want)
	}
	var headers []wire.Header
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		headers = append(headers, wire.Header{Key: name, Value: []byte(value)})
	}
	if err := mac.VerifyRecord(headers, 3, []byte(lines)); err != nil {
		t.Errorf("%q: %v", headers, err)
	}
	if head, ours, err := wire.ParseRecordHead(headers); err != nil || !ours || head.Sent == 0 || head.Partitions != 12 {
		t.Errorf("%+v, %v", head, err)
	}
}
