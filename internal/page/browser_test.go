package page

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
)

// picture keeps what is seen where HOTPARAM_PICTURES names a directory.
func picture(t *testing.T, tab *testenv.Tab, name string) {
	t.Helper()
	if dir := os.Getenv("HOTPARAM_PICTURES"); dir != "" {
		tab.Screenshot(filepath.Join(dir, name+".png"))
	}
}

func TestPictures(t *testing.T) {
	if os.Getenv("HOTPARAM_PICTURES") == "" {
		t.Skip("HOTPARAM_PICTURES names no directory")
	}
	f := newFixture(t, 200*time.Millisecond, "")
	names := []string{"phone", "iphone+16+pro", "laptop", "usb-c+cable", "gift+card", "winter+boots", "desk+lamp", "coffee+grinder", "monitor+4k", "socks", "backpack", "tent+2+persons"}
	hots := func(step int) []hotparam.Hot {
		var all []hotparam.Hot
		for i, n := range names {
			base := 240 + 900/float64(i+1)
			h := search(n, base*(1+0.25*math.Sin(float64(step)/9+float64(i))+0.06*math.Sin(float64(step*7+i))))
			h.Since = time.Now().Add(-time.Duration(40*(i+1)) * time.Second)
			all = append(all, h)
		}
		d := search("x", 2.4e6)
		d.Key = hotparam.Key{Rule: "downloads", Text: "GET /files/installer-7.2.dmg"}
		d.Cause = hotparam.Cause{Kind: hotparam.Absolute, Rate: hotparam.Rate{N: 10e6, Per: 10 * time.Second}, Unit: hotparam.Bytes}
		d.Low, d.High, d.Limit, d.Burst, d.Mode = 23_100_000, 24_900_000, hotparam.Rate{N: 1e6, Per: time.Second}, 2e6, hotparam.ModeShadow
		s := search("x", 612)
		s.Key = hotparam.Key{Rule: "tenants", Text: "* X-Tenant=acme-logistics-gmbh"}
		s.Cause = hotparam.Cause{Kind: hotparam.Share, Rate: hotparam.Rate{N: 100, Per: time.Minute}, Factor: hotparam.Percent(20)}
		s.Low, s.High, s.Limit, s.Burst, s.Mode = 36800, hotparam.Unknown, hotparam.Rate{}, 0, hotparam.ModeWatch
		return append(all, d, s)
	}
	f.publish(t, hots(0)...)
	f.publisher.Suspects(0, []hotparam.Hot{{Key: hotparam.Key{Rule: "search-terms", Text: "GET /search?q=charger"}, Rate: 181}})
	f.publisher.Instances([]hotparam.Instance{{Name: "api-1", Heard: time.Now()}, {Name: "api-2", Heard: time.Now()}})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
				f.publisher.Refresh(0, hots(i))
			}
		}
	}()
	time.Sleep(40 * time.Second)
	b := testenv.StartChromium(t)
	tab := b.Tab(1360, 820)
	tab.Open(f.server.URL)
	tab.Wait("document.querySelectorAll('.grid .row').length > 5")
	time.Sleep(2 * time.Second)
	picture(t, tab, "light")
	tab.Press("j", "Enter")
	time.Sleep(1500 * time.Millisecond)
	picture(t, tab, "light-detail")
	tab.Prefer("prefers-color-scheme", "dark")
	time.Sleep(300 * time.Millisecond)
	picture(t, tab, "dark-detail")
	tab.Press("Escape")
	for _, key := range []string{"2", "3", "4", "5", "6"} {
		tab.Press(key)
		time.Sleep(300 * time.Millisecond)
		picture(t, tab, "dark-"+key)
	}
	tab.Press("1")
	tab.Resize(360, 740)
	time.Sleep(700 * time.Millisecond)
	picture(t, tab, "small-dark")
	tab.Prefer("prefers-color-scheme", "light")
	tab.Press("j", "Enter")
	time.Sleep(700 * time.Millisecond)
	picture(t, tab, "small-detail")
	t.Log(tab.Problems())
}
