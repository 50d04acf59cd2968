package hotwords

import (
	"fmt"

	"github.com/hotparam/hotparam/internal/published"
)

// Near formats the part of its threshold that a key has reached: "62%", "<1%".
func Near(h *published.Hot) string {
	if percent := 100 * h.Ratio; percent < 1 {
		return "<1%"
	} else {
		return fmt.Sprintf("%.0f%%", min(percent, 99))
	}
}
