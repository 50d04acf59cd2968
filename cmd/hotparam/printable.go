package main

import "github.com/hotparam/hotparam/internal/termtext"

// printable is what every text of others passes on its way to a person.
var printable = termtext.Printable
