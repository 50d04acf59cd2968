package wire_test

import (
	"fmt"

	"github.com/hotparam/hotparam/internal/wire"
)

// A count of a key, as any StatsD takes it.
func ExampleParseLine() {
	line := wire.AppendKey([]byte("shop.search-terms"), wire.Plain, []byte("GET /search?q=phone"))
	line = append(line, ":3|c"...)
	fmt.Printf("%s\n", line)

	parsed, err := wire.ParseLine(line)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := wire.Plain.AppendDecoded(nil, parsed.Key)
	fmt.Printf("%s %s %d %v\n", parsed.Prefix, text, parsed.N, err)
	// Output:
	// shop.search-terms.hot_param.GET%20/search?q=phone:3|c
	// shop.search-terms GET /search?q=phone 3 <nil>
}
