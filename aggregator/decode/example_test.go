package decode_test

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/wire"
)

// counts prints counts. The other methods of Handler report what senders hide or lose, which
// senders that are not instances do not report.
type counts struct{ decode.Handler }

func (counts) Count(c decode.Count) { fmt.Printf("%s %d\n", c.Text, c.N) }

// Lines from any StatsD client are counts, in any order of their parameters.
func ExampleDecoder_Packet() {
	file, err := config.Parse("hotparam.yaml", []byte(`
namespace: shop
rules:
  - id: search
    match: {route: "GET /search"}
    hot: 200/s
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	d := decode.NewDecoder(file.Rules, wire.Plain)
	d.Packet([]byte("shop.search.hot_param.GET%20/search?q=phone&lang=en:3|c\nshop.logins:1|c\n"), time.Now(), counts{})

	stats := d.Stats()
	fmt.Println(stats.Counts, "count,", stats.NoRule+stats.Foreign, "other line")
	// Output:
	// GET /search?lang=en&q=phone 3
	// 1 count, 1 other line
}
