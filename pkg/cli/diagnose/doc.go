// Package diagnose implements the command that collects the data for a bug report, without secrets. It reads the hub and, if requested, a
// managed cluster.
package diagnose
