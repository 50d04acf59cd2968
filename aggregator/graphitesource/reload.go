package graphitesource

import (
	"errors"

	"github.com/hotparam/hotparam"
)

// Reload puts other rules in force while the source runs.
func (s *Source) Reload(_ *hotparam.Rules) error { return errors.ErrUnsupported }
