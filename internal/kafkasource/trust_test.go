package kafkasource

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

var trustKey = []byte("0123456789abcdef0123456789abcdef")

// signed returns a record of partition 0, or one signed for another partition if that is given.
func signed(key []byte, head *wire.RecordHead, sent time.Time, partition int32, lines ...string) *kgo.Record {
	head.Sent = sent.UnixNano()
	r := headed(head, 0, lines...)
	all := wire.NewMAC(key).AppendRecordMAC(appendHeaders(nil, r), partition, r.Value)
	last := all[len(all)-1]
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: last.Key, Value: last.Value})
	return r
}

func TestSignedRecords(t *testing.T) {
	at := noon.Add(time.Second)
	many := line("q=1", 150)
	changed := signed(trustKey, head(1, at), at, 0, many)
	changed.Value = []byte(strings.Replace(many, "q=1", "q=2", 1))
	stampedBySender := signed(trustKey, head(1, noon.Add(-time.Hour)), noon.Add(-time.Hour), 0, many)
	stampedBySender.Timestamp = noon.Add(-time.Hour)
	for _, test := range []struct {
		name    string
		record  *kgo.Record
		twice   bool
		hot     bool
		refused []decode.PacketRefusal
	}{
		{"signed", signed(trustKey, head(1, at), at, 0, many), false, true, nil},
		{"twice", signed(trustKey, head(1, at), at, 0, line("q=1", 60)), true, false, []decode.PacketRefusal{decode.RefusedReplay}},
		{"lines alone", &kgo.Record{Value: []byte(many)}, false, false, []decode.PacketRefusal{decode.RefusedUnsigned}},
		{"headers alone", headed(head(1, at), 0, many), false, false, []decode.PacketRefusal{decode.RefusedUnsigned}},
		{"by another key", signed([]byte(strings.Repeat("k", 32)), head(1, at), at, 0, many), false, false, []decode.PacketRefusal{decode.RefusedMAC}},
		{"another value", changed, false, false, []decode.PacketRefusal{decode.RefusedMAC}},
		{"of another partition", signed(trustKey, head(1, at), at, 1, many), false, false, []decode.PacketRefusal{decode.RefusedMAC}},
		{"sent long ago", signed(trustKey, head(1, at), at.Add(-31*time.Second), 0, many), false, false, []decode.PacketRefusal{decode.RefusedTime}},
		{"an old one, stamped by who sends it again", stampedBySender, false, false, []decode.PacketRefusal{decode.RefusedTime}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := bench(t)
			w.decoder.Believe(&decode.Trust{Mode: decode.TrustSigned, Keys: [][]byte{trustKey}})
			r := test.record
			if r.Timestamp.IsZero() {
				stamped(r, 0, at)
			}
			w.record(r, 0, at)
			if test.twice {
				r.Offset = 1
				w.record(r, 0, at)
			}
			w.runDue(at.Add(20 * time.Millisecond))
			var want [decode.Refusals]int64
			for _, why := range test.refused {
				want[why]++
			}
			if s := w.decoder.Stats(); s.Refused != want {
				t.Errorf("refused %v, want %v", s.Refused, test.refused)
			}
			if hot := w.published().hot("q=1") || w.published().hot("q=2"); hot != test.hot {
				t.Errorf("hot: %v", hot)
			}
			if len(test.refused) > 0 && !test.twice && len(w.mark.senders) > 0 {
				t.Error("its sender holds up the partition's time")
			}
			if w.position != r.Offset+1 {
				t.Errorf("position %d", w.position)
			}
		})
	}
}
