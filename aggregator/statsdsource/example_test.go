package statsdsource_test

import (
	"context"
	"fmt"
	"net"

	"github.com/hotparam/hotparam/aggregator/statsdsource"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// found is a Publisher that hands on keys that become hot.
type found chan rules.Hot

func (f found) Publish(c rules.Change) {
	for _, h := range c.Hot {
		f <- h
	}
}
func (found) Refresh(int, []rules.Hot)   {}
func (found) Suspects(int, []rules.Hot)  {}
func (found) Instances([]rules.Instance) {}

// A source finds the hot keys in what any StatsD client sends.
func Example() {
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hot := make(found, 1)
	source, err := statsdsource.New(ctx, statsdsource.Config{
		Rules: file.Rules, Publisher: hot, Listen: []string{"udp://127.0.0.1:0"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- source.Run(ctx) }()

	client, err := new(net.Dialer).DialContext(ctx, "udp", source.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if _, err := client.Write([]byte("shop.search.hot_param.GET%20/search?q=phone:250|c\n")); err != nil {
		fmt.Println(err)
		return
	}
	h := <-hot
	fmt.Println(h.Text, h.Low)

	cancel()
	fmt.Println(<-ended)
	// Output:
	// GET /search?q=phone 250
	// <nil>
}
