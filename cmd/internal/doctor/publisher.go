package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
)

// publisher checks that an aggregator publishes for the namespace.
func (x *examination) publisher(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	left, err := x.Client.PTTL(call, published.NewLayout(x.Namespace).Beat).Result()
	if err != nil {
		x.add("publisher", Unknown, fmt.Sprintf("whether an aggregator publishes cannot be read: %v", err), "")
		return
	}
	if x.published = left > 0; x.published {
		x.add("publisher", OK, fmt.Sprintf("an aggregator publishes for namespace %q", x.Namespace), "")
		return
	}
	what, mend := fmt.Sprintf("no aggregator publishes for namespace %q", x.Namespace), "start an aggregator with the same file: hotparam aggregator --config FILE. If one runs already, its log and /-/ready say why it does not publish"
	spaces, err := hotkeys.ListNamespaces(call, x.Client)
	spaces = slices.DeleteFunc(spaces, func(name string) bool { return name == x.Namespace })
	switch {
	case len(spaces) > 0:
		what += "; there are " + strings.Join(spaces, ", ")
		mend = "correct namespace in the file or --namespace, or s" + mend[1:]
	case err != nil:
		what += "; which there are cannot be read (the user of Redis lacks +scan)"
	}
	x.add("publisher", Problem, what, mend)
}
