package wire

import (
	"errors"
	"strconv"
)

// DefaultTopic is the default Kafka topic of counts.
const DefaultTopic = "hotparam.counters"

// MaxRecord is the maximum size of a record's value: far below the brokers' default limit, with
// room for the headers and for incompressible data.
const MaxRecord = 512 << 10

// RecordHead is the content of a Kafka record's headers, which describe the lines in its value.
// It has the data of a packet's meta line, and the namespace. A record of another program may
// have no such headers; it contains lines only.
type RecordHead struct {
	Meta
	// Namespace is the namespace of the rules ([A-Za-z0-9_-]+).
	Namespace []byte
	// Partitions is the number of partitions that the sender spread its keys over. Seq numbers
	// the records of one partition.
	Partitions int
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Names of the headers. Values are decimal numbers; the incarnation is hexadecimal.
const (
	headerSchema      = "hotparam-schema" // "1"
	headerNamespace   = "hotparam-namespace"
	headerInstance    = "hotparam-instance"
	headerIncarnation = "hotparam-incarnation"
	headerSequence    = "hotparam-sequence"
	headerStart       = "hotparam-start"
	headerHeld        = "hotparam-held"
	headerUnsent      = "hotparam-unsent"
	headerAged        = "hotparam-aged" // left out when 0
	headerSent        = "hotparam-sent" // left out when 0
	headerPartitions  = "hotparam-partitions"
	headerSums        = "hotparam-sums"   // hexadecimal, as in the meta line; left out if there are none
	headerGroups      = "hotparam-groups" // hexadecimal; left out when 0
)

// ErrHead means that headers are ours but cannot be read.
var ErrHead = errors.New("wire: bad record headers")

// AppendRecordHead appends the headers. Their values do not change with the head later.
func AppendRecordHead(dst []Header, h *RecordHead) []Header {
	// All values share one buffer. Each is clipped, so that none grows into the next.
	buf := make([]byte, 0, len(h.Namespace)+len(h.Instance)+1+16+7*20+8+8*17)
	add := func(key string, value func(b []byte) []byte) {
		from := len(buf)
		buf = value(buf)
		dst = append(dst, Header{key, buf[from:len(buf):len(buf)]})
	}
	number := func(key string, n int64) {
		add(key, func(b []byte) []byte { return strconv.AppendInt(b, n, 10) })
	}
	number(headerSchema, 1)
	add(headerNamespace, func(b []byte) []byte { return append(b, h.Namespace...) })
	add(headerInstance, func(b []byte) []byte { return append(b, h.Instance...) })
	add(headerIncarnation, func(b []byte) []byte { return strconv.AppendUint(b, h.Incarnation, 16) })
	add(headerSequence, func(b []byte) []byte { return strconv.AppendUint(b, h.Seq, 10) })
	number(headerStart, h.Start)
	number(headerHeld, h.Held)
	number(headerUnsent, h.Unsent)
	number(headerPartitions, int64(h.Partitions))
	if h.Aged > 0 {
		number(headerAged, h.Aged)
	}
	if h.Sent > 0 {
		number(headerSent, h.Sent)
	}
	if h.Groups != 0 {
		add(headerGroups, func(b []byte) []byte { return strconv.AppendUint(b, uint64(h.Groups), 16) })
	}
	if h.Sums.Stated {
		add(headerSums, h.Sums.append)
	}
	return dst
}

// ParseRecordHead reads headers. ours is false if the record has none of ours, as a record of
// another program. Headers that it does not know are skipped. A missing header, or another
// schema, is [ErrHead]. The head's bytes are views into the headers.
func ParseRecordHead(headers []Header) (h RecordHead, ours bool, err error) {
	var seen fieldSet
	ok := true
	for _, x := range headers {
		letter, known := headerFields[x.Key]
		if !known {
			continue
		}
		ours = true
		seen.add(letter)
		switch letter {
		case 'n':
			h.Namespace = x.Value
		case 'p':
			n, good := parseInt(x.Value)
			h.Partitions, ok = int(n), ok && good && 0 < n && n <= maxPartitions
		default:
			ok = h.setField(letter, x.Value) && ok
		}
	}
	if ours && (!ok || !seen.has("viesthunp") || h.Seq == 0 || h.Held < 1) {
		return RecordHead{}, true, ErrHead
	}
	return h, ours, nil
}

// headerFields has the letters of the headers: those of the meta line, n and p.
var headerFields = map[string]byte{
	headerSchema: 'v', headerInstance: 'i', headerIncarnation: 'e', headerSequence: 's', headerStart: 't',
	headerHeld: 'h', headerUnsent: 'u', headerAged: 'a', headerSent: 'w', headerSums: 'b', headerGroups: 'g',
	headerNamespace: 'n', headerPartitions: 'p',
}

// maxPartitions is more than the partitions of any topic.
const maxPartitions = 1 << 20
