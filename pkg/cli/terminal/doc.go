// Package terminal has the input and output shared by all commands: exit codes, output formats, tables, trees, progress, prompts, and the
// redaction of secrets. It does not connect to a cluster.
package terminal
