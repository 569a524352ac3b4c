// Package stacks implements the commands that create add-ons from packages, one by one or from a stack file. It reads and writes the hub.
package stacks
