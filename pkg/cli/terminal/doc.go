// Package terminal is what the commands have in common that people and programs see: exit codes, formats of output, tables, trees, progress,
// questions, and the secrets that are taken out of what is shown. It touches no cluster.
package terminal
