package main

import (
	"errors"
	"strings"
)

// version is set by the linker (see the Makefile).
var version = "devel"

// names is a flag value: a comma-separated list of names.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(value string) error {
	*n = nil
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name == "" {
			return errors.New("names must not be empty")
		}
		*n = append(*n, name)
	}
	return nil
}
