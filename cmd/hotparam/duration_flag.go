package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam/internal/base"
)

// durationVar defines a duration flag. Its value may also be in days and weeks, as in the rules
// file.
func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, otherwise time.Duration, usage string) {
	*d = otherwise
	flags.Var((*base.DurationFlag)(d), name, usage)
}
