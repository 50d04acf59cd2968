package answer

import "sync"

// maxHeaders is the largest number of headers: three of a problem, and five that state a limit
// in both styles.
const maxHeaders = 8

// Buffer holds a response while it is made.
type Buffer struct {
	Text   []byte // values of headers, one after the other; see End
	Body   []byte
	fields [maxHeaders]field
	n      int
}

// field is a header. Its value is the text from the previous field's end to its own.
type field struct {
	name string
	end  int
}

var buffers = sync.Pool{New: func() any {
	const size = 256 // enough for most responses
	return &Buffer{Text: make([]byte, 0, size), Body: make([]byte, 0, size)}
}}

// NewBuffer returns an empty buffer.
func NewBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Free returns the buffer to the pool. The caller must not use Text and Body afterwards.
func (b *Buffer) Free() {
	b.Text, b.Body, b.n = b.Text[:0], b.Body[:0], 0
	buffers.Put(b)
}

// Add adds a header. The name must be in the form of http.CanonicalHeaderKey.
func (b *Buffer) Add(name, value string) {
	b.Text = append(b.Text, value...)
	b.End(name)
}

// End adds a header whose value is the text appended to Text since the header before.
func (b *Buffer) End(name string) {
	b.fields[b.n] = field{name, len(b.Text)}
	b.n++
}

// SetHeaders sets the headers in h. Servers keep h after the request, so the values share no
// memory with the buffer.
func (b *Buffer) SetHeaders(h map[string][]string) {
	text, values := string(b.Text), make([]string, b.n)
	start := 0
	for i := range values {
		f := &b.fields[i]
		values[i] = text[start:f.end]
		h[f.name] = values[i : i+1 : i+1] // A second value must not overwrite the next header's.
		start = f.end
	}
}
