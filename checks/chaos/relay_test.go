package chaos

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// echo starts a server that echoes each byte until the test ends, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// exchange sends a text over a connection and returns the bytes that arrive within wait.
func exchange(t *testing.T, conn net.Conn, text string, wait time.Duration) (string, error) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	buf := make([]byte, len(text))
	n, err := io.ReadFull(conn, buf)
	return string(buf[:n]), err
}

func TestTCPRelay(t *testing.T) {
	relay := newTCPRelay(t, echo(t), 1, nil)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", relay.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	const (
		long  = 20 * time.Second
		hello = "hello, relay\n"
	)
	first := dial()
	if got, err := exchange(t, first, hello, long); got != hello {
		t.Fatalf("through: %q, %v", got, err)
	}
	relay.setMode(slow)
	begun := time.Now()
	if got, err := exchange(t, first, hello, long); got != hello || time.Since(begun) < slowness {
		t.Errorf("slow: %q after %v, %v", got, time.Since(begun), err)
	}
	relay.setMode(garbled)
	if got, err := exchange(t, first, hello, long); got == hello || err != nil {
		t.Errorf("garbled: %q, %v", got, err)
	}
	relay.setMode(silent)
	if got, err := exchange(t, first, hello, 100*time.Millisecond); got != "" || !isTimeout(err) {
		t.Errorf("silent: %q, %v", got, err)
	}
	relay.setMode(through)
	if got, err := exchange(t, first, hello, 100*time.Millisecond); got != "" || !isTimeout(err) {
		t.Errorf("a connection that was silent: %q, %v", got, err)
	}
	second := dial()
	if got, err := exchange(t, second, hello, long); got != hello {
		t.Errorf("a new connection: %q, %v", got, err)
	}
	relay.setMode(cut)
	if got, err := exchange(t, second, hello, long); err == nil || isTimeout(err) {
		t.Errorf("cut: %q, %v", got, err)
	}
}

// Traffic between servers passes, whatever the relay does to clients.
func TestTCPRelayLeavesServersAlone(t *testing.T) {
	for _, first := range []string{
		"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n",
		"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$21\r\nsentinel-0a1b2c3d-cmd\r\n",
	} {
		relay := newTCPRelay(t, echo(t), 1, nil)
		conn, err := net.Dial("tcp", relay.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for _, m := range []mode{through, garbled, silent, cut, through} {
			relay.setMode(m)
			if got, err := exchange(t, conn, first, 20*time.Second); got != first {
				t.Errorf("mode %d: %q, %v", m, got, err)
			}
		}
	}
}

// A relay to Kafka damages whole answers, even if they arrive in parts.
func TestKafkaRelay(t *testing.T) {
	relay := newTCPRelay(t, echo(t), 1, testenv.NewGarbler(1))
	conn, err := net.Dial("tcp", relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	sent := append([]byte{0, 1, 0, 0}, bytes.Repeat([]byte("0123456789abcdef"), 1<<12)...)
	got := make([]byte, len(sent))
	damaged := func() (n int) {
		t.Helper()
		for range 20 {
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, sent) {
				n++
				if want := append(bytes.Clone(sent[:len(sent)-4]), 0x7f, 0xff, 0xff, 0xff); !bytes.Equal(got, want) {
					t.Fatal("more was changed than the last four bytes")
				}
			}
		}
		return n
	}
	if n := damaged(); n > 0 {
		t.Errorf("through: %d answers are damaged", n)
	}
	relay.setMode(throttled)
	if n := damaged(); n == 0 || n == 20 {
		t.Errorf("throttled: %d of 20 answers are damaged", n)
	}
	relay.setMode(through)
	if n := damaged(); n > 0 {
		t.Errorf("through again: %d answers are damaged", n)
	}
}

func TestUDPRelay(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	relay := newUDPRelay(t, server.LocalAddr().String(), "q=steady")
	conn, err := net.Dial("udp", relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const meta = "hotparam.meta:1|c|#v:1,i:a,e:1f,s:3,t:1700000000000000000,h:1,u:0,w:1700000000100000000\nsearch.hot_param.GET /search?q=steady:7|c\n"
	packet := func() string {
		t.Helper()
		if _, err := conn.Write([]byte(meta)); err != nil {
			t.Fatal(err)
		}
		_ = server.SetReadDeadline(time.Now().Add(20 * time.Second))
		buf := make([]byte, 1500)
		n, _, err := server.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := packet(); got != meta {
		t.Errorf("got %q", got)
	}
	relay.setOffset(-time.Second)
	if got := packet(); !bytes.Contains([]byte(got), []byte(",t:1699999999000000000,h:1,u:0,w:1699999999100000000\nsearch")) {
		t.Errorf("with a clock that is slow by a second: %q", got)
	}
	if got := string(relay.sampleLine()); got != "search.hot_param.GET /search?q=steady:7|c" {
		t.Errorf("sample %q", got)
	}
}
