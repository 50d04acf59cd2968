package testenv

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// echo returns the address of a server that echoes its input.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		work.Wait()
	})
	return listener.Addr().String()
}

func TestRelay(t *testing.T) {
	const short = 100 * time.Millisecond
	r := NewRelay(t, echo(t))
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, patience time.Duration) error {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte("hello")); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, make([]byte, 5))
		return err
	}
	isTimeout := func(err error) bool {
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout()
	}
	first := dial()
	if err := ask(first, time.Minute); err != nil {
		t.Fatal("up:", err)
	}
	r.Delay(short)
	if began := time.Now(); ask(first, time.Minute) != nil || time.Since(began) < short {
		t.Errorf("an answer took %v, want %v at least", time.Since(began), short)
	}
	r.Delay(0)
	r.LoseAnswer()
	if err := ask(first, time.Minute); err == nil || isTimeout(err) {
		t.Errorf("a lost answer: %v, want a broken connection", err)
	}
	second := dial()
	if err := ask(second, time.Minute); err != nil {
		t.Error("after a lost answer:", err)
	}
	r.Set(LinkSilent)
	if err := ask(second, short); !isTimeout(err) {
		t.Errorf("silent: %v, want no answer", err)
	}
	r.Set(LinkUp)
	if err := ask(second, short); !isTimeout(err) {
		t.Errorf("a connection that was silent: %v, want no answer", err)
	}
	third := dial()
	if err := ask(third, time.Minute); err != nil {
		t.Error("up again:", err)
	}
	r.Set(LinkCut)
	for what, conn := range map[string]net.Conn{"one that was there": third, "a new one": dial()} {
		if err := ask(conn, time.Minute); err == nil || isTimeout(err) {
			t.Errorf("cut, %s: %v, want a broken connection", what, err)
		}
	}
}
