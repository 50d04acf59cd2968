package meter

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
)

// Response counts the bytes of a response's body, and keeps its status. It also measures the
// wait for the client, if it has a Wait.
type Response struct {
	http.ResponseWriter
	Bytes  int64
	Status int // 0 if the handler has written none
	wait   *Wait
}

func (m *Response) WriteHeader(status int) {
	if m.Status == 0 && status >= 200 { // 1xx responses are not final
		m.Status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *Response) Write(p []byte) (int, error) {
	m.wait.begin()
	defer m.wait.end()
	n, err := m.ResponseWriter.Write(p)
	m.Bytes += int64(n)
	return n, err
}

func (m *Response) WriteString(s string) (int, error) {
	m.wait.begin()
	defer m.wait.end()
	n, err := io.WriteString(m.ResponseWriter, s)
	m.Bytes += int64(n)
	return n, err
}

// Unwrap returns the server's writer to [http.ResponseController].
func (m *Response) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *Response) flush() {
	m.wait.begin()
	defer m.wait.end()
	m.ResponseWriter.(http.Flusher).Flush()
}

func (m *Response) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return m.ResponseWriter.(http.Hijacker).Hijack()
}

// readFrom sends a file as the server does. The wait for other sources is the handler's.
func (m *Response) readFrom(from io.Reader) (int64, error) {
	file := from
	if limited, ok := from.(*io.LimitedReader); ok {
		file = limited.R
	}
	if _, ok := file.(*os.File); !ok && m.wait != nil {
		return io.Copy(struct{ io.Writer }{m}, from)
	}
	m.wait.begin()
	defer m.wait.end()
	n, err := m.ResponseWriter.(io.ReaderFrom).ReadFrom(from)
	m.Bytes += n
	return n, err
}

// Meters with the optional interfaces of their writers: F is http.Flusher, H is http.Hijacker, and R is
// io.ReaderFrom, for example to use sendfile. Each is one pointer, so that it needs no memory.
type (
	meterF   struct{ *Response }
	meterH   struct{ *Response }
	meterR   struct{ *Response }
	meterFH  struct{ meterF }
	meterFR  struct{ meterF }
	meterHR  struct{ meterH }
	meterFHR struct{ meterFH }
)

func (m meterF) Flush() { m.flush() }

func (m meterH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return m.hijack() }

func (m meterFH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return m.hijack() }

func (m meterR) ReadFrom(from io.Reader) (n int64, err error) { return m.readFrom(from) }

func (m meterFR) ReadFrom(from io.Reader) (n int64, err error) { return m.readFrom(from) }

func (m meterHR) ReadFrom(from io.Reader) (n int64, err error) { return m.readFrom(from) }

func (m meterFHR) ReadFrom(from io.Reader) (n int64, err error) { return m.readFrom(from) }

// WithInterfacesOf returns the meter with the optional interfaces that w has, for handlers that
// use them by type assertion instead of through an http.ResponseController.
func (m *Response) WithInterfacesOf(w http.ResponseWriter) http.ResponseWriter {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	_, reads := w.(io.ReaderFrom)
	switch {
	case flushes && hijacks && reads: // HTTP/1
		return meterFHR{meterFH{meterF{m}}}
	case flushes && hijacks:
		return meterFH{meterF{m}}
	case flushes && reads:
		return meterFR{meterF{m}}
	case flushes: // HTTP/2
		return meterF{m}
	case hijacks && reads:
		return meterHR{meterH{m}}
	case hijacks:
		return meterH{m}
	case reads:
		return meterR{m}
	}
	return m
}
