package published_test

import (
	"fmt"

	"github.com/hotparam/hotparam/internal/published"
)

func ExampleNewLayout() {
	layout := published.NewLayout("shop")
	fmt.Println(layout.Hot, layout.Changed)
	// Output: hotparam:{shop}:hot hotparam:{shop}:changed
}
