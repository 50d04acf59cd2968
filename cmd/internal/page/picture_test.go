//go:build real

package page

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// TestPictureForTheDocuments takes the pictures of docs/WATCHING.md, in both themes, from the
// page of a real aggregator that scripts/pictures.sh has filled. It is no test of the page.
func TestPictureForTheDocuments(t *testing.T) {
	url, dir := os.Getenv("HOTPARAM_PICTURE_OF"), os.Getenv("HOTPARAM_PICTURES")
	if url == "" || dir == "" {
		t.Skip("scripts/pictures.sh sets HOTPARAM_PICTURE_OF and HOTPARAM_PICTURES")
	}
	browser := real.StartChromium(t)
	for _, theme := range []string{"light", "dark"} {
		tab := browser.Tab(t, 1280, 656)
		tab.Prefer("prefers-color-scheme", theme)
		tab.Open(url)
		tab.Wait(rowsInSight + " >= 8 && document.getElementById('link').dataset.state === 'live'")
		tab.Wait(ratesDescend)
		tab.Press("j", "Enter")
		tab.Wait("document.querySelector('.detail .origins td')?.textContent")
		time.Sleep(3 * time.Second) // the lines grow by a point a second
		tab.Wait(ratesDescend)
		tab.Screenshot(filepath.Join(dir, "page-"+theme+".png"))
		clean(t, tab)
	}
}

// ratesDescend is true while the rows are in their sort order: it follows rates that change every
// few seconds.
const ratesDescend = `(() => {
	const rows = [...document.querySelectorAll(".grid .row")].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
	const rates = rows.map((row) => parseFloat(row.querySelector(".rate").textContent));
	return rates.every((rate, i) => rate > 0 && (i === 0 || rate <= rates[i - 1]));
})()`
