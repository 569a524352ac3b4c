// Package model holds property-based tests of the packages that decide: random histories of desired states, with faults between any two
// writes, in a small model of a hub and a managed cluster. It touches no cluster.
package model
