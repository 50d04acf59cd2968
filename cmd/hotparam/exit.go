package main

import "errors"

// Exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
	exitConfig
	exitUnreachable
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error       { return &exitError{exitUsage, err} }
func configError(err error) error      { return &exitError{exitConfig, err} }
func unreachableError(err error) error { return &exitError{exitUnreachable, err} }

// errReported means that everything about a failure has been printed already.
var errReported = errors.New("reported")
