package main

import "github.com/hotparam/hotparam/internal/termtext"

// printable escapes text from outside. All such text passes through it before it is shown.
var printable = termtext.Printable
