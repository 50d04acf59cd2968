package wire_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestUsageGolden(t *testing.T) {
	u := wire.Usage{Busy: 250 * time.Millisecond, Took: 1500 * time.Microsecond, Begun: 3, Ended: 2, Refused: 7}
	n, name := u.Encode()
	line := wire.AppendOrigin(nil, wire.Plain, "shop.search", []byte("GET /search?q=phone"), wire.OriginLine{Kind: wire.KeyUsage, Name: name, N: n})
	if want := "shop.search.hot_origin.GET%20/search?q=phone:250000|c|#u:3%2C2%2C1500%2C7"; string(line) != want {
		t.Errorf("%s, want %s", line, want)
	}
}

func TestUsageRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := int64(wire.MaxCount)
		n := rapid.Int64Range(0, most)
		want := wire.Usage{
			Busy: time.Duration(n.Draw(t, "busy")) * time.Microsecond, Took: time.Duration(n.Draw(t, "took")) * time.Microsecond,
			Begun: n.Draw(t, "begun"), Ended: n.Draw(t, "ended"), Refused: n.Draw(t, "refused"),
		}
		busy, name := want.Encode()
		line := wire.AppendOrigin(nil, wire.Strict, "a", []byte("k"), wire.OriginLine{Kind: wire.RouteUsage, Name: name, N: busy})
		o, err := wire.ParseOrigin(line)
		if err != nil {
			t.Fatal(err)
		}
		if name, err = wire.Plain.AppendDecoded(nil, o.Name); err != nil {
			t.Fatal(err)
		}
		if got, ok := wire.ParseUsage(o.N, name); !ok || got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

func TestBadUsage(t *testing.T) {
	for _, name := range []string{"", "1", "1,2,3", "1,2,3,4,5", "1,2,3,", ",1,2,3", "1,2,-3,4", "1,2,3,x", "1,2,3,4,", "1,2,3,1099511627777"} {
		if u, ok := wire.ParseUsage(1, []byte(name)); ok {
			t.Errorf("%q reads %+v", name, u)
		}
	}
}
