package keytext

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
	"unsafe"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// maxRedacted is the most values of one request that are hashed, which bounds the time for it.
// All values beyond have the text tooMany.
const (
	maxRedacted = 1024
	tooMany     = "hmac-more"
)

// Redactor redacts values. It is not safe for concurrent use.
type Redactor struct {
	redaction *rules.Redaction
	mac       hash.Hash
	buf       []byte
	sum       []byte
}

// NewRedactor returns a Redactor of x, which is meant to be reused: it does not allocate once its
// buffers have grown.
func NewRedactor(x *rules.Redaction) *Redactor { return &Redactor{redaction: x, mac: x.MAC()} }

// Of returns the Redaction that the Redactor applies.
func (r *Redactor) Of() *rules.Redaction { return r.redaction }

// Append appends the text that replaces the parameter's value in keys. The parameter need not be
// one that is redacted.
func (r *Redactor) Append(dst []byte, p rules.Param) []byte {
	q := param{text: p.Value, source: p.Source}
	return r.append(dst, &q, p.Name, p.Value)
}

func (r *Redactor) append(dst []byte, q *param, name, value string) []byte {
	r.buf = appendSource(r.buf[:0], q.source)
	r.buf = append(base.AppendEscaped(r.buf, name), '=')
	r.buf = base.AppendEscaped(r.buf, value)
	r.mac.Reset()
	r.mac.Write(r.buf)
	r.sum = r.mac.Sum(r.sum[:0])
	clear(r.buf) // the value must not remain in memory
	return hex.AppendEncode(append(dst, "hmac-"...), r.sum[:16])
}

// Redact redacts the values of the parameters that were added since the last call. It changes
// their order, so it comes before Sort. [Params.At] still returns the original values.
func (p *Params) Redact(r *Redactor) {
	for i := range p.list {
		q := &p.list[i]
		if q.marks&seen != 0 {
			continue
		}
		q.marks |= seen
		if !r.redaction.Redacts(q.source, q.name()) {
			continue
		}
		name, value := q.name(), q.value()
		start := len(p.decoded)
		p.decoded = append(append(p.decoded, name...), '=')
		if p.hidden < maxRedacted {
			p.decoded = r.append(p.decoded, q, name, value)
		} else {
			p.decoded = append(p.decoded, tooMany...)
		}
		p.hidden++
		q.marks &= seen | named
		p.standFor(q, start, value)
	}
}

// standFor gives q the text that was written to p.decoded from start on, and stores the original
// value after it; see plain.
func (p *Params) standFor(q *param, start int, value string) {
	end := len(p.decoded)
	p.decoded = append(binary.LittleEndian.AppendUint32(p.decoded, uint32(len(value))), value...)
	b := p.decoded[start:end]
	q.text = unsafe.String(&b[0], len(b)) // as in add
	q.marks |= redacted
	if isPlain(q.name()) && isPlain(q.value()) {
		q.marks |= clean
	}
}

// plain returns the original of a value that was replaced. In Params.decoded its length in four
// bytes and the value follow the text, so that other parameters need no field for it.
func (q *param) plain() string {
	behind := unsafe.Add(unsafe.Pointer(unsafe.StringData(q.text)), len(q.text))
	n := binary.LittleEndian.Uint32(unsafe.Slice((*byte)(behind), 4))
	return unsafe.String((*byte)(unsafe.Add(behind, 4)), int(n))
}

// AppendPath appends the text that, in keys, replaces a path whose template is not known. A part
// of such a path may be a redacted value.
func (r *Redactor) AppendPath(dst []byte, path string) []byte {
	return r.Append(append(dst, '/'), rules.Param{Source: rules.Path, Value: path})
}

// AppendPlainText appends the text of the key that was made last of the parameters, with the values
// that they had before [Params.Redact].
func (p *Params) AppendPlainText(dst []byte, text string) []byte {
	if p.hidden == 0 || !strings.Contains(text, "=hmac-") {
		return append(dst, text...)
	}
	dst = append(dst, text[:strings.LastIndexByte(text, '?')+1]...) // see MatchesText
	written := p.written
	for n, i := range written {
		q := &p.list[i]
		if q.marks&(redacted|masked) != redacted {
			dst = p.appendNext(dst, int(i), n)
			continue
		}
		if n > 0 {
			dst = append(dst, '&')
		}
		dst = append(base.AppendEscaped(appendSource(dst, q.source), q.name()), '=')
		dst = base.AppendEscaped(dst, q.plain())
	}
	p.written = written
	return dst
}
